// Generate: new pictures of what is asked for.
import { h, say, seedField, show, three } from "./dom.js";
import { Latest, ask, askFile } from "./service.js";
import { changed, settings, state } from "./state.js";
import { literal, python, quoted, tools } from "./tools.js";

export const generate = {
  title: "Generate",
  lead: "Ask for new pictures. The same seed paints the same pictures. Click one to take it along to the other panels.",
  fits: (model) => model.can.includes("generate"),

  build(model, examples, go) {
    const byClass = model.labels === "classes" && model.can.includes("classify");
    const byAttribute = model.labels === "attributes" && model.can.includes("classify");
    const own = settings("generate", { seed: 0, n: byAttribute ? 12 : byClass ? 6 : 24, classes: [], attributes: {} });
    const grid = h("div", { className: "grid", "aria-live": "polite", "aria-busy": "true" });
    const taken = h("div", { className: "row", hidden: true });
    const latest = new Latest();

    const question = () => ({
      seed: own.seed, n: own.n,
      ...(byClass && own.classes.length ? { classes: own.classes } : {}),
      ...(byAttribute && Object.keys(own.attributes).length ? { attributes: own.attributes } : {}),
    });
    const take = (data, button) => {
      state.picture = data;
      changed();
      grid.querySelectorAll("[aria-pressed=true]").forEach((other) => other.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", "true");
      taken.hidden = false;
      say("This picture is taken along.");
    };
    const paint = () => latest.run(async () => {
      changed();
      try {
        const found = await ask(model.id, "generate", question());
        const rows = found.labels.map((label, row) => [h("div", { className: "name" }, label || "new pictures"),
          h("div", { className: "strip" }, found.pictures.slice(row * found.columns, (row + 1) * found.columns).map((data, k) => {
            const button = h("button", { className: "pick", "aria-pressed": "false", "aria-label": `Take along: ${label || "picture"} ${k + 1}`,
              onclick: () => take(data, button) }, show(data, ""));
            return button;
          }))]);
        grid.replaceChildren(...rows.flat());
        grid.ariaBusy = "false";
      } catch (error) {
        say(error.message, true);
      }
    });

    const chips = byClass ? h("div", { className: "chips", role: "group", "aria-label": "Classes" }, model.names.map((name) => {
      const chip = h("button", { "aria-pressed": own.classes.includes(name), onclick: () => {
        own.classes = own.classes.includes(name) ? own.classes.filter((one) => one !== name) : [...own.classes, name];
        chip.setAttribute("aria-pressed", own.classes.includes(name));
        paint();
      } }, name);
      return chip;
    })) : null;
    const switches = byAttribute ? h("div", { className: "switches" }, model.names.map((name, k) => h("fieldset", {}, h("legend", {}, name),
      three(`new-${k}`, name, [["", "as usual"], ["1", "on"], ["0", "off"]], String(own.attributes[name] ?? ""), (value) => {
        if (value === "") delete own.attributes[name];
        else own.attributes[name] = Number(value);
        paint();
      })))) : null;
    const count = h("input", { type: "number", min: 1, max: byClass ? 16 : 64, value: own.n, onchange: () => {
      own.n = Math.min(byClass ? 16 : 64, Math.max(1, count.valueAsNumber || 1));
      count.value = own.n;
      paint();
    } });
    taken.append("Taken along. Go on to", ...go.panels().filter((panel) => !["generate", "capsules"].includes(panel)).map((panel) =>
      h("button", { className: "small", onclick: () => go.to(panel) }, go.title(panel))));
    paint();
    const words = () => Object.entries(own.attributes).map(([name, value]) => `${name}=${value}`).join(",");
    return h("div", { className: "stack" },
      chips ? h("div", {}, h("h2", {}, "Classes (none chosen: all)"), chips) : null, switches,
      h("div", { className: "row" }, seedField(own.seed, (seed) => { own.seed = seed; paint(); }),
        h("label", {}, byClass ? "Pictures of each " : "Pictures ", count)),
      grid, taken,
      tools({
        files: [["Download PNG", "generated.png", () => askFile(model.id, "generate", question(), "image/png")]],
        python: () => {
          const { seed, n, ...what } = question();
          const named = [...Object.entries(what).map(([k, v]) => `${k}=${literal(v)}`), `n=${n}`, `seed=${seed}`];
          return python(model.id, `model.generate(${named.join(", ")}).save("generated.png")`);
        },
        command: () => ["gencaps generate", model.id,
          byClass && own.classes.length ? `--classes ${quoted(own.classes.join(","))}` : "",
          byAttribute && words() ? `--attributes ${quoted(words())}` : "",
          `--n ${own.n} --seed ${own.seed} --out generated.png`].filter(Boolean).join(" "),
      }));
  },
};
