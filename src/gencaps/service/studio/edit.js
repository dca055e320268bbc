// Edit: change one thing and keep the rest; turn the numbers of capsules by hand.
import { h, say, show, slider, source, three } from "./dom.js";
import { Latest, ask } from "./service.js";
import { changed, settings, state } from "./state.js";
import { fromBase64, literal, python, quoted, tools } from "./tools.js";
import { well } from "./well.js";

const REACH = 3;
const STEP = 0.05;
/** A number from the standard normal distribution (Box and Muller). */
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
/** A draw of it that a slider can show just so. */
const drawn = () => Number((Math.round(Math.min(REACH, Math.max(-REACH, normal())) / STEP) * STEP).toFixed(2));
/** A slider reaches as far as the capsule's own numbers do. */
const reach = (row) => Math.max(REACH, ...row.map((value) => Math.ceil(Math.abs(value))));

export const edit = {
  title: "Edit",
  lead: "Switch something on or off and keep the rest, or turn the numbers of a capsule by hand. The picture follows.",
  fits: (model) => model.can.includes("edit") || model.can.includes("turn"),

  build(model, examples) {
    const switching = model.can.includes("edit");
    const byClass = model.labels === "classes";
    const own = settings("edit", { wishes: {}, become: "", intensity: 1, dials: {}, capsule: "" });
    const painted = show(state.picture, "The edited picture", { className: "large" });
    const latest = new Latest();
    let capsules = null; // of the picture as it is
    let read = null; // the picture that they were read off

    const wished = () => switching && (byClass ? own.become !== "" : Object.keys(own.wishes).length > 0);
    const wishes = () => (byClass ? own.become : own.wishes);
    const byHand = () => Object.keys(own.dials).length > 0;

    const put = async (data, began) => {
      painted.src = source(data);
      await painted.decode();
      painted.dataset.painted = Number(painted.dataset.painted ?? 0) + 1;
      if (began) performance.measure("edit", { start: began });
    };
    // one question for the whole edit: what is kept is read off the picture itself, never off a painting of it
    const painting = async (began) => {
      const asked = wished()
        ? await ask(model.id, "edit", { picture: state.picture, wishes: wishes(), intensity: own.intensity, ...(byHand() ? { turn: own.dials } : {}) })
        : await ask(model.id, "turn", turned());
      await put(asked.pictures[0], began);
    };
    const repaint = (began) => latest.run(async () => {
      changed();
      try {
        if (model.can.includes("turn")) {
          const { picture } = state;
          if (picture !== read) {
            capsules = await ask(model.id, "encode", { picture });
            read = picture;
          }
          fillDials();
        }
        if (wished() || model.can.includes("turn")) await painting(began);
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
    const split = (word) => [word.slice(0, word.lastIndexOf(".")), Number(word.slice(word.lastIndexOf(".") + 1))];

    // --- dials
    const dials = h("div", { className: "dials" });
    const choose = h("select", { "aria-label": "Capsule", onchange: () => {
      own.capsule = choose.value;
      changed();
      fillDials();
    } });
    // the capsules that paint after the switches, the surest first; of what is switched, at the prior's mean at first
    const active = () => {
      const wish = byClass ? (own.become ? { [own.become]: 1 } : {}) : own.wishes;
      const now = (name) => byClass ? name : `${name} ${wish[name] ? "on" : "off"}`;
      const fresh = switching ? Object.keys(wish).map(now) : [];
      const replaced = byClass && own.become ? model.names : Object.keys(wish).flatMap((name) => [`${name} on`, `${name} off`]);
      const kept = capsules.names.map((name, k) => [capsules.on[k] * capsules.presence[k], name])
        .filter(([sure, name]) => sure > 0 && !replaced.includes(name)).sort((a, b) => b[0] - a[0]);
      return [...fresh, ...kept.map(([, name]) => name)];
    };
    const fillDials = () => {
      const names = active();
      if (!names.includes(own.capsule)) own.capsule = names[0];
      choose.replaceChildren(...names.map((name) => h("option", { value: name, selected: name === own.capsule }, name)));
      const place = capsules.names.indexOf(own.capsule);
      const row = capsules.capsules[place].map((value) => (capsules.on[place] ? value : 0));
      dials.replaceChildren(...row.map((value, place) => {
        const word = `${own.capsule}.${place}`;
        const { input, number } = slider(`${own.capsule}, number ${place}`, -reach(row), reach(row), STEP, own.dials[word] ?? value, (moved) => {
          const began = performance.now();
          own.dials[word] = moved;
          latest.run(async () => {
            changed();
            try {
              await painting(began);
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
    // a style is what the capsule's numbers say: a draw from the prior, of this entity alone
    const restyle = (name) => {
      if (!capsules) return;
      if (!byClass && own.wishes[name] === undefined) set(name, "1");
      own.capsule = byClass ? name : `${name} ${own.wishes[name] ? "on" : "off"}`;
      capsules.capsules[0].forEach((_, place) => { own.dials[`${own.capsule}.${place}`] = drawn(); });
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
          else restyle(own.become);
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
          const extra = [`intensity=${own.intensity}`, ...(byHand() ? [`turn=${literal(own.dials)}`] : [])];
          const line = wished() ? `edited = model.edit("picture.png", ${literal(wishes())}, ${extra.join(", ")})`
            : byHand() ? `edited = model.turn("picture.png", ${literal(own.dials)})` : 'edited = model.reconstruct("picture.png")';
          return python(model.id, line, 'edited.save("edited.png")');
        },
        command: () => {
          const words = byClass ? own.become : Object.entries(own.wishes).map(([k, v]) => `${k}=${v}`).join(",");
          const turns = Object.entries(own.dials).map(([k, v]) => `${k}=${v}`).join(",");
          if (wished()) {
            return `gencaps edit ${model.id} picture.png --set ${quoted(words)} --intensity ${own.intensity}${turns ? ` --turn ${quoted(turns)}` : ""} --out edited.png`;
          }
          return turns ? `gencaps turn ${model.id} picture.png --set ${quoted(turns)} --out edited.png` : `gencaps reconstruct ${model.id} picture.png --out edited.png`;
        },
      })));
    repaint();
    return box;
  },
};
