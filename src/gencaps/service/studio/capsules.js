// Capsules: what each capsule of a product of experts draws by itself.
import { h, say, seedField, show, three } from "./dom.js";
import { Latest, ask, askFile } from "./service.js";
import { changed, settings, state } from "./state.js";
import { python, tools } from "./tools.js";

export const capsules = {
  title: "Capsules",
  lead: "Each row is what one capsule draws when all others are silent. Choose a capsule to walk along each of its axes.",
  fits: (model) => model.experts > 0,

  build(model) {
    const own = settings("capsules", { seed: 0, n: 6, domain: "restricted", capsule: 0, steps: 7 });
    own.capsule = Math.min(own.capsule, model.experts - 1);
    const rows = h("div", { className: "grid" });
    const axes = h("div", { className: "grid" });
    const heading = h("h2", {});
    const [drawing, walking] = [new Latest(), new Latest()];
    const shown = Math.min(model.experts, 40);
    const question = () => ({ capsules: [...Array(shown).keys()], domain: own.domain, n: own.n, seed: own.seed });
    const take = (data) => {
      state.picture = data;
      changed();
      say("This picture is taken along.");
    };
    const strip = (found, row, label) => h("div", { className: "strip" },
      found.pictures.slice(row * found.columns, (row + 1) * found.columns).map((data, k) =>
        h("button", { className: "pick", "aria-label": `Take along: ${label}, ${k + 1}`, onclick: () => take(data) }, show(data, ""))));
    const guarded = (latest, job) => latest.run(async () => {
      changed();
      try {
        await job();
      } catch (error) {
        say(error.message, true);
      }
    });
    const draw = () => guarded(drawing, async () => {
      const found = await ask(model.id, "generate", question());
      rows.replaceChildren(...found.labels.flatMap((label, row) => [
        h("button", { className: "small", "aria-pressed": row === own.capsule, "data-capsule": row, onclick: () => choose(row) }, label),
        strip(found, row, label)]));
    });
    const walk = () => guarded(walking, async () => {
      const found = await ask(model.id, "explore", { capsule: own.capsule, steps: own.steps });
      heading.textContent = `Along the axes of capsule ${own.capsule}`;
      axes.replaceChildren(...found.labels.flatMap((label, row) => [h("div", { className: "name" }, label), strip(found, row, label)]));
    });
    const choose = (capsule) => {
      own.capsule = capsule;
      rows.querySelectorAll("[data-capsule]").forEach((one) => one.setAttribute("aria-pressed", Number(one.dataset.capsule) === capsule));
      walk().then(() => heading.scrollIntoView({ block: "nearest" }));
    };
    draw();
    walk();
    return h("div", { className: "stack" },
      h("div", { className: "row" }, seedField(own.seed, (seed) => { own.seed = seed; draw(); }),
        three("domain", "Directions to draw from", [["restricted", "as in training"], ["full", "all directions"]], own.domain, (value) => {
          own.domain = value;
          draw();
        })),
      h("div", { className: "even" }, h("section", { "aria-label": "What each capsule draws" }, h("h2", {}, "Each capsule alone"), rows),
        h("section", { "aria-label": "Walks" }, heading, axes)),
      tools({
        files: [["Download PNG", "capsules.png", () => askFile(model.id, "generate", question(), "image/png")]],
        python: () => python(model.id,
          `model.generate(capsule=range(${shown}), domain="${own.domain}", n=${own.n}, seed=${own.seed}).save("capsules.png")`,
          `model.explore(${own.capsule}, steps=${own.steps}).save("axes.png")`),
        command: () => [`gencaps generate ${model.id} --capsule ${[...Array(shown).keys()].join(",")} --domain ${own.domain} --n ${own.n} --seed ${own.seed} --out capsules.png`,
          `gencaps explore ${model.id} --capsule ${own.capsule} --steps ${own.steps} --out axes.png`].join("\n"),
      }));
  },
};
