// Edit: change one thing and keep the rest; turn the numbers of capsules by hand.
import { h, say, show, slider, source, three } from "./dom.js";
import { Latest, ask } from "./service.js";
import { changed, settings, state } from "./state.js";
import { fromBase64, literal, python, quoted, tools } from "./tools.js";
import { well } from "./well.js";

const REACH = 3;
/** A number from the standard normal distribution (Box and Muller). */
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
/** A slider reaches as far as the capsule's own numbers do. */
const reach = (row) => Math.max(REACH, ...row.map((value) => Math.ceil(Math.abs(value))));

export const edit = {
  title: "Edit",
  lead: "Switch something on or off and keep the rest, or turn the numbers of a capsule by hand. The picture follows.",
  fits: (model) => model.can.includes("edit") || model.can.includes("turn"),

  build(model, examples) {
    const switching = model.can.includes("edit");
    const byClass = model.labels === "classes";
    const own = settings("edit", { wishes: {}, become: "", intensity: 1, styles: 0, seed: 0, dials: {}, capsule: "" });
    const painted = show(state.picture, "The edited picture", { className: "large" });
    const latest = new Latest();
    let capsules = null; // of the edited picture, before any number is turned

    const wished = () => switching && (byClass ? own.become !== "" : Object.keys(own.wishes).length > 0);
    const wishes = () => (byClass ? own.become : own.wishes);
    const options = () => ({ intensity: own.intensity, ...(own.styles ? { styles: 1, seed: own.seed } : {}) });

    const put = async (data, began) => {
      painted.src = source(data);
      await painted.decode();
      painted.dataset.painted = Number(painted.dataset.painted ?? 0) + 1;
      if (began) performance.measure("edit", { start: began });
    };
    // from the switches up: the picture, its edit, the edit's capsules, then the numbers that were turned
    const repaint = (began) => latest.run(async () => {
      changed();
      try {
        const base = wished()
          ? (await ask(model.id, "edit", { picture: state.picture, wishes: wishes(), ...options() })).pictures[0]
          : state.picture;
        if (model.can.includes("turn")) {
          capsules = await ask(model.id, "encode", { picture: base });
          fillDials();
        }
        if (wished() && !Object.keys(own.dials).length) await put(base, began);
        else if (model.can.includes("turn")) await turn(began);
      } catch (error) {
        say(error.message, true);
      }
    });
    const turned = () => {
      const values = capsules.capsules.map((one) => [...one]);
      for (const [word, value] of Object.entries(own.dials)) {
        const [capsule, place] = split(word);
        const row = values[capsules.names.indexOf(capsule)];
        if (row && place < row.length) row[place] = value;
      }
      return { capsules: values, on: capsules.on };
    };
    const turn = async (began) => put((await ask(model.id, "turn", turned())).pictures[0], began);
    const split = (word) => [word.slice(0, word.lastIndexOf(".")), Number(word.slice(word.lastIndexOf(".") + 1))];

    // --- dials
    const dials = h("div", { className: "dials" });
    const choose = h("select", { "aria-label": "Capsule", onchange: () => {
      own.capsule = choose.value;
      changed();
      fillDials();
    } });
    const fillDials = () => {
      const order = capsules.names.map((name, k) => [capsules.on[k] * capsules.presence[k], k]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
      const active = order.filter(([sure]) => sure > 0).map(([, k]) => capsules.names[k]);
      if (!active.includes(own.capsule)) own.capsule = active[0];
      choose.replaceChildren(...active.map((name) => h("option", { value: name, selected: name === own.capsule }, name)));
      const row = capsules.capsules[capsules.names.indexOf(own.capsule)];
      dials.replaceChildren(...row.map((value, place) => {
        const word = `${own.capsule}.${place}`;
        const { input, number } = slider(`${own.capsule}, number ${place}`, -reach(row), reach(row), 0.05, own.dials[word] ?? value, (moved) => {
          const began = performance.now();
          own.dials[word] = moved;
          latest.run(async () => {
            changed();
            try {
              await turn(began);
            } catch (error) {
              say(error.message, true);
            }
          });
        });
        return h("div", { className: "dial" }, h("span", {}, String(place)), input, number);
      }));
    };
    const reset = h("button", { className: "small", onclick: () => {
      own.dials = {};
      repaint();
    } }, "Numbers as they were");

    // --- switches
    const restyle = (name) => {
      if (byClass) {
        own.styles = 1;
        own.seed = Math.floor(Math.random() * 1e6);
      } else if (capsules) { // a style is what the capsule's numbers say: a draw from the prior, of this attribute alone
        if (own.wishes[name] === undefined) set(name, "1");
        own.capsule = `${name} ${own.wishes[name] ? "on" : "off"}`;
        capsules.capsules[0].forEach((_, place) => { own.dials[`${own.capsule}.${place}`] = Number(normal().toFixed(2)); });
      }
      repaint(performance.now());
    };
    const forget = (name) => {
      for (const word of Object.keys(own.dials)) if ([`${name} on`, `${name} off`].includes(split(word)[0])) delete own.dials[word];
    };
    const set = (name, value) => {
      if (value === "") delete own.wishes[name];
      else own.wishes[name] = Number(value);
      const chosen = box.querySelector(`input[name="edit-${model.names.indexOf(name)}"][value="${value}"]`);
      if (chosen) chosen.checked = true;
    };
    const intensity = slider("Intensity", 0, 1, 0.05, own.intensity, (value) => {
      own.intensity = value;
      repaint(performance.now());
    });
    const become = h("select", { "aria-label": "Class to become", onchange: () => {
      own.become = become.value;
      own.dials = {};
      repaint(performance.now());
    } }, h("option", { value: "" }, "keep as it is"), model.names.map((name) => h("option", { value: name, selected: name === own.become }, name)));
    const controls = !switching ? null : byClass
      ? h("div", { className: "wide" }, h("label", {}, "Become ", become),
        h("button", { onclick: () => {
          if (!own.become) say("Choose a class to become first.");
          else restyle("");
        } }, "Other style"))
      : h("div", { className: "switches" }, model.names.map((name, k) => h("fieldset", {}, h("legend", {}, name),
        three(`edit-${k}`, name, [["", "keep"], ["1", "on"], ["0", "off"]], String(own.wishes[name] ?? ""), (value) => {
          set(name, value);
          forget(name);
          repaint(performance.now());
        }),
        h("button", { className: "small", "aria-label": `Other style of ${name}`, onclick: () => restyle(name) }, "other style"))));

    const place = well({ title: "The picture", model, examples, picture: state.picture, set: (data) => {
      state.picture = data;
      own.dials = {};
      repaint();
    } });
    const box = h("div", { className: "columns" }, place.box, h("div", { className: "stack" },
      h("figure", { className: "follow" }, painted, h("figcaption", {}, "Edited")),
      controls,
      switching ? h("label", { className: "wide" }, "Intensity", intensity.input, intensity.number) : null,
      model.can.includes("turn") ? h("section", { className: "stack", "aria-label": "Numbers of a capsule" },
        h("div", { className: "wide" }, h("h2", {}, "Numbers of the capsule"), choose, reset), dials) : null,
      tools({
        files: [["Download PNG", "edited.png", async () => fromBase64(painted.src.split(",")[1])]],
        python: () => {
          const extra = [`intensity=${own.intensity}`, ...(own.styles ? ["styles=1", `seed=${own.seed}`] : [])];
          const first = wished() ? `edited = model.edit("picture.png", ${literal(wishes())}, ${extra.join(", ")})` : null;
          const from = wished() ? "edited.pictures" : '"picture.png"';
          const second = Object.keys(own.dials).length ? `edited = model.turn(${from}, ${literal(own.dials)})` : null;
          const none = first || second ? null : 'edited = model.reconstruct("picture.png")';
          return python(model.id, ...[first, second, none, 'edited.save("edited.png")'].filter(Boolean));
        },
        command: () => {
          const words = byClass ? own.become : Object.entries(own.wishes).map(([k, v]) => `${k}=${v}`).join(",");
          const turns = Object.entries(own.dials).map(([k, v]) => `${k}=${v}`).join(",");
          if (wished()) {
            return `gencaps edit ${model.id} picture.png --set ${quoted(words)} --intensity ${own.intensity}${own.styles ? ` --styles 1 --seed ${own.seed}` : ""}${turns ? ` --turn ${quoted(turns)}` : ""} --out edited.png`;
          }
          return turns ? `gencaps turn ${model.id} picture.png --set ${quoted(turns)} --out edited.png` : `gencaps reconstruct ${model.id} picture.png --out edited.png`;
        },
      })));
    repaint();
    return box;
  },
};
