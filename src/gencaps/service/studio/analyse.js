// Analyse: what a picture shows, and what the model makes of it.
import { bars, h, say, show, source } from "./dom.js";
import { Latest, ask } from "./service.js";
import { changed, state } from "./state.js";
import { fromBase64, python, tools } from "./tools.js";
import { well } from "./well.js";

export const analyse = {
  title: "Analyse",
  lead: "Give the model a picture: it says what the picture shows, which capsules fired, and paints it again from them.",
  fits: (model) => ["classify", "reconstruct", "score"].some((act) => model.can.includes(act)),

  build(model, examples) {
    const can = (act) => model.can.includes(act);
    const headline = h("p", { className: "answer", "aria-live": "polite" });
    const doubt = h("p", { className: "quiet", hidden: true });
    const seen = can("classify") ? bars(model.names, "What the picture shows") : null;
    const again = show(state.picture, "Painted again from its capsules", { className: "large" });
    const real = can("score") ? bars(["looks real"], "How real the picture looks") : null;
    const firing = h("div", {});
    let fired = null;
    const latest = new Latest();

    const parts = {
      classify: (found) => {
        seen.set(model.names.map((name) => found.presence[name]));
        headline.textContent = found.label || "none of the attributes";
        doubt.hidden = !(found.unknown > 0.1);
        doubt.textContent = `It may show nothing that the model knows (${(100 * found.unknown).toFixed(0)} %).`;
      },
      reconstruct: (found) => { again.src = source(found.pictures[0]); },
      score: (found) => real.set([found.score]),
      encode: (found) => {
        fired ??= bars(found.names, "How strongly each capsule fired");
        fired.set(found.presence);
        if (!fired.list.isConnected) firing.replaceChildren(h("h2", {}, "Which capsules fired"), fired.list);
      },
      explain: (found) => {
        fired ??= bars(found.presence.map((_, k) => `object ${k}`), "How surely each object is there");
        fired.set(found.presence);
        if (!fired.list.isConnected) firing.replaceChildren(h("h2", {}, "Which objects are there"), fired.list);
      },
    };
    // of a model with classes the capsules are the classes: their bars stand above already
    const asked = Object.keys(parts).filter((act) => can(act) && !(act === "encode" && can("classify") && model.labels === "classes"));
    const look = () => latest.run(async () => {
      const picture = state.picture;
      try {
        await Promise.all(asked.map(async (act) => parts[act](await ask(model.id, act, { picture }))));
        again.dataset.of = picture;
      } catch (error) {
        say(error.message, true);
      }
    });
    const source_ = well({ title: "The picture", model, examples, picture: state.picture, set: (data) => {
      state.picture = data;
      changed();
      look();
    } });
    look();
    const acts = ["classify", "reconstruct", "score"].filter(can);
    return h("div", { className: "columns" }, source_.box, h("div", { className: "stack" },
      can("classify") ? h("div", {}, headline, doubt) : null,
      h("div", { className: "shown" }, can("reconstruct") ? h("figure", {}, again, h("figcaption", {}, "Painted again from its capsules")) : null,
        h("div", { className: "stack grow" }, seen?.list, real?.list)),
      firing,
      tools({
        files: can("reconstruct") ? [["Download PNG", "painted-again.png", async () => fromBase64(again.src.split(",")[1])]] : [],
        python: () => python(model.id, ...acts.map((act) => ({
          classify: 'print(model.classify("picture.png"))',
          reconstruct: 'model.reconstruct("picture.png").save("painted-again.png")',
          score: 'print(model.score("picture.png"))',
        })[act])),
        command: () => acts.filter((act) => act !== "score").map((act) =>
          `gencaps ${act} ${model.id} picture.png${act === "reconstruct" ? " --out painted-again.png" : ""}`).join("\n"),
      })));
  },
};
