// Explain: which template and which object painted what; drag an object and its parts follow.
import { h, say, show, source } from "./dom.js";
import { Latest, ask } from "./service.js";
import { changed, settings, state } from "./state.js";
import { fromBase64, python, tools } from "./tools.js";
import { well } from "./well.js";

const STEP = 0.1;

/** Gives the colour of a painter, as the coloured pictures have it. */
function colour(place) {
  const angle = 2 * Math.PI * ((place * 0.618034) % 1);
  const parts = [0, 1, 2].map((k) => 0.5 + 0.5 * Math.cos(angle - (k * 2 * Math.PI) / 3));
  const top = Math.max(...parts);
  return `rgb(${parts.map((part) => Math.round((255 * part) / top)).join(" ")})`;
}

export const explain = {
  title: "Explain",
  lead: "Colours show which template, and which object, painted each pixel. Drag an object: its parts follow it.",
  fits: (model) => model.can.includes("explain"),

  build(model, examples) {
    const own = settings("explain", { object: -1, right: 0, down: 0 });
    const large = (alt) => show(state.picture, alt, { className: "large" });
    const [again, templates, objects] = [large("Painted again"), large("Coloured by template"), large("Coloured by object")];
    const moving = large("The picture with the object moved");
    moving.classList.add("drag");
    moving.tabIndex = 0;
    const chips = h("div", { className: "chips", role: "group", "aria-label": "Object to move" });
    const where = h("output", { className: "quiet" });
    const latest = new Latest();
    let shares = [];

    const look = (fresh) => latest.run(async () => {
      changed();
      try {
        const found = await ask(model.id, "explain", { picture: state.picture });
        [again, templates, objects].forEach((image, k) => { image.src = source(found.pictures[k + 1]); });
        shares = found.objects;
        const painted = shares.map((one) => one.flat().reduce((sum, share) => sum + share, 0));
        const order = found.presence.map((sure, k) => [painted[k + 1], k]).sort((a, b) => b[0] - a[0]).map(([, k]) => k).slice(0, 8);
        if (fresh || !(own.object >= 0 && own.object < found.presence.length)) own.object = order[0];
        if (!order.includes(own.object)) order.push(own.object);
        chips.replaceChildren(...order.map((k) => {
          const dot = h("span", { className: "dot" });
          dot.style.background = colour(k + 1);
          return h("button", { "aria-pressed": k === own.object, "data-object": k, onclick: () => choose(k) }, dot, `object ${k}`);
        }));
        await paint();
      } catch (error) {
        say(error.message, true);
      }
    });
    const paint = async () => {
      where.textContent = `object ${own.object}: ${own.right.toFixed(2)} right, ${own.down.toFixed(2)} down`;
      const { object, right, down } = own;
      const found = await ask(model.id, "move", { picture: state.picture, object, right, down });
      moving.src = source(found.pictures[0]);
      moving.dataset.painted = Number(moving.dataset.painted ?? 0) + 1;
    };
    const repaint = () => latest.run(async () => {
      changed();
      try {
        await paint();
      } catch (error) {
        say(error.message, true);
      }
    });
    const choose = (object) => {
      own.object = object;
      own.right = own.down = 0;
      chips.querySelectorAll("button").forEach((chip) => chip.setAttribute("aria-pressed", Number(chip.dataset.object) === object));
      repaint();
    };
    const shift = (right, down) => {
      own.right = Math.max(-2, Math.min(2, right));
      own.down = Math.max(-2, Math.min(2, down));
      repaint();
    };
    /** Finds the object that painted most of the pixel under the pointer, if any did. */
    const under = (x, y) => {
      const size = shares[0]?.length ?? 0;
      const [column, row] = [Math.min(size - 1, Math.floor(x * size)), Math.min(size - 1, Math.floor(y * size))];
      const best = shares.slice(1).map((one) => one[row][column]);
      const most = Math.max(...best);
      return most > 0.2 ? best.indexOf(most) : own.object;
    };
    let from = null;
    moving.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      moving.focus();
      moving.setPointerCapture(event.pointerId);
      const box = moving.getBoundingClientRect();
      if (own.right === 0 && own.down === 0) {
        const object = under((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
        if (object !== own.object) choose(object);
      }
      from = { x: event.clientX, y: event.clientY, right: own.right, down: own.down, side: box.width };
    });
    moving.addEventListener("pointermove", (event) => {
      if (from) shift(from.right + (2 * (event.clientX - from.x)) / from.side, from.down + (2 * (event.clientY - from.y)) / from.side);
    });
    for (const end of ["pointerup", "pointercancel"]) moving.addEventListener(end, () => { from = null; });
    moving.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
      if (!step) return;
      event.preventDefault();
      shift(own.right + step[0], own.down + step[1]);
    });

    const place = well({ title: "The picture", model, examples, picture: state.picture, set: (data) => {
      state.picture = data;
      own.right = own.down = 0;
      look(true);
    } });
    look(false);
    const captioned = (image, text) => h("figure", {}, image, h("figcaption", {}, text));
    return h("div", { className: "columns" }, place.box, h("div", { className: "stack" },
      h("div", { className: "shown" }, captioned(again, "Painted again"), captioned(templates, "By template"), captioned(objects, "By object")),
      h("h2", {}, "Move an object"),
      h("div", { className: "shown" }, captioned(moving, "Drag, or use the arrow keys"),
        h("div", { className: "stack grow" }, chips, where, h("div", { className: "row" },
          h("button", { className: "small", onclick: () => shift(0, 0) }, "Back to its place")))),
      tools({
        files: [["Download PNG", "moved.png", async () => fromBase64(moving.src.split(",")[1])]],
        python: () => python(model.id, 'model.explain("picture.png").save("explained.png")',
          `model.move("picture.png", ${own.object}, right=${own.right.toFixed(2)}, down=${own.down.toFixed(2)}).save("moved.png")`),
        command: () => [`gencaps explain ${model.id} picture.png --out explained.png`,
          `gencaps move ${model.id} picture.png --object ${own.object} --right=${own.right.toFixed(2)} --down=${own.down.toFixed(2)} --out moved.png`].join("\n"),
      })));
  },
};
