// Interpolate: a walk from one picture to another.
import { h, say, seedField, show, slider, source } from "./dom.js";
import { Latest, ask, askFile } from "./service.js";
import { changed, settings, state } from "./state.js";
import { literal, python, quoted, tools } from "./tools.js";
import { well } from "./well.js";

export const interpolate = {
  title: "Interpolate",
  lead: "Walk from one picture to another through the capsules. Move the slider, or take the walk along as a GIF.",
  fits: (model) => model.can.includes("interpolate") || model.can.includes("walk"),

  build(model, examples) {
    const between = model.can.includes("interpolate");
    const act = between ? "interpolate" : "walk";
    const own = settings("interpolate", { steps: 10, at: 0.5, only: "", seed: 0 });
    if (between && !state.other) state.other = examples.pictures.find((one) => one !== state.picture) ?? state.picture;
    const large = show(state.picture, "A step of the walk", { className: "large" });
    const strip = h("div", { className: "strip walk" });
    const latest = new Latest();
    let walk = [];

    const question = () => (between
      ? { start: state.picture, end: state.other, steps: own.steps, ...(own.only ? { only: [own.only] } : {}) }
      : { n: 1, steps: own.steps, seed: own.seed });
    const place = () => Math.round(own.at * (walk.length - 1));
    const point = () => {
      if (!walk.length) return;
      large.src = source(walk[place()]);
      large.dataset.step = place();
      [...strip.children].forEach((one, k) => one.setAttribute("aria-pressed", k === place()));
    };
    const paint = () => latest.run(async () => {
      changed();
      try {
        walk = (await ask(model.id, act, question())).pictures;
        strip.replaceChildren(...walk.map((data, k) => h("button", { className: "pick", "aria-label": `Step ${k + 1} of ${walk.length}`, onclick: () => {
          own.at = k / (walk.length - 1);
          along.input.value = own.at;
          along.number.textContent = own.at.toFixed(2);
          changed();
          point();
        } }, show(data, ""))));
        point();
      } catch (error) {
        say(error.message, true);
      }
    });
    const along = slider("Along the walk", 0, 1, 0.01, own.at, (value) => {
      own.at = value;
      changed();
      point();
    });
    const steps = h("input", { type: "number", min: 2, max: 32, value: own.steps, onchange: () => {
      own.steps = Math.min(32, Math.max(2, steps.valueAsNumber || 2));
      steps.value = own.steps;
      paint();
    } });
    const only = h("select", { onchange: () => { own.only = only.value; paint(); } }, h("option", { value: "" }, "everything"),
      model.names.map((name) => h("option", { value: name, selected: name === own.only }, name)));
    const ends = between ? ["picture", "other"].map((which, k) => well({
      title: k ? "To this picture" : "From this picture", model, examples, picture: state[which],
      set: (data) => { state[which] = data; paint(); },
    }).box) : [];
    paint();
    const named = () => [`steps=${own.steps}`, ...(own.only ? [`only=${literal(own.only)}`] : [])].join(", ");
    return h("div", { className: "stack" }, between ? h("div", { className: "even" }, ends) : null,
      h("div", { className: "stack" },
        h("figure", {}, large, h("figcaption", {}, "Where the slider stands")),
        h("label", { className: "wide" }, "Along the walk", along.input, along.number),
        strip,
        h("div", { className: "row" }, h("label", {}, "Steps ", steps),
          between && model.labels === "attributes" ? h("label", {}, "Walk in ", only) : null,
          between ? h("button", { onclick: () => {
            [state.picture, state.other] = [state.other, state.picture];
            ends.forEach((end, k) => { end.querySelector("figure img").src = source(k ? state.other : state.picture); });
            paint();
          } }, "Turn round") : seedField(own.seed, (seed) => { own.seed = seed; paint(); })),
        tools({
          files: [["Download PNG", "walk.png", () => askFile(model.id, act, question(), "image/png")],
            ["Download GIF", "walk.gif", () => askFile(model.id, act, question(), "image/gif")]],
          python: () => python(model.id, between
            ? `model.interpolate("from.png", "to.png", ${named()}).save("walk.png")`
            : `model.walk(1, steps=${own.steps}, seed=${own.seed}).save("walk.png")`),
          command: () => (between
            ? `gencaps interpolate ${model.id} from.png to.png --steps ${own.steps}${own.only ? ` --only ${quoted(own.only)}` : ""} --out walk.gif`
            : `gencaps walk ${model.id} --n 1 --steps ${own.steps} --seed ${own.seed} --out walk.gif`),
        })));
  },
};
