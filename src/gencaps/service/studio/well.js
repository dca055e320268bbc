// Where pictures come from: a file that is dropped or opened, an example, a drawing, the clipboard.
import { h, say, show, source } from "./dom.js";
import { Latest, ask } from "./service.js";
import { drawingPad } from "./pad.js";
import { fromBase64, save } from "./tools.js";

const MOST_BYTES = 10 * 2 ** 20;

const readFile = (file) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.split(",")[1]);
  reader.onerror = () => failed(new Error(`${file.name} cannot be read`));
  reader.readAsDataURL(file);
});

/** Makes the place for one picture. `set` is told each new one, as the model sees it, in base64. */
export function well({ title, model, examples, picture, set }) {
  const fitting = new Latest();
  let drawing = false;

  const take = (data) => {
    image.src = source(data);
    marks.forEach(([button, own]) => button.setAttribute("aria-pressed", own === data));
    set(data);
  };
  const fit = (data) => fitting.run(async () => {
    try {
      take((await ask(model.id, "fit", { picture: data })).pictures[0]);
    } catch (error) {
      say(error.message, true);
    }
  });
  const open = async (file) => {
    if (!file) return;
    if (file.size > MOST_BYTES) return say(`${file.name} has more than 10 MB: choose a smaller picture.`, true);
    await fit(await readFile(file));
  };

  const image = show(picture, title);
  const input = h("input", { type: "file", accept: "image/png,image/jpeg,image/webp", hidden: true, "aria-label": `Open a file: ${title}`,
    onchange: () => open(input.files[0]) });
  const pad = drawingPad(model.size, fit);
  const draw = h("button", { "aria-pressed": "false", onclick: () => {
    drawing = !drawing;
    box.classList.toggle("drawing", drawing);
    draw.setAttribute("aria-pressed", drawing);
    draw.textContent = drawing ? "Done" : "Draw";
    pad.hidden = !drawing;
  } }, "Draw");
  pad.hidden = true;
  const marks = examples.pictures.map((data, k) => [h("button", {
    className: "pick", title: examples.labels[k], "aria-label": `Example ${k + 1}: ${examples.labels[k]}`,
    "aria-pressed": data === picture, onclick: () => take(data),
  }, show(data, "")), data]);

  const box = h("section", { className: "well", "aria-label": title,
    ondragover: (event) => { event.preventDefault(); box.classList.add("over"); },
    ondragleave: () => box.classList.remove("over"),
    ondrop: (event) => {
      event.preventDefault();
      box.classList.remove("over");
      open(event.dataTransfer.files[0]);
    } },
    h("figure", {}, image, h("figcaption", {}, title)),
    h("div", { className: "row" }, h("button", { onclick: () => input.click() }, "Open a file"), input,
      model.channels === 1 ? draw : null,
      h("button", { className: "small", onclick: () => save(fromBase64(image.src.split(",")[1]), "picture.png") }, "Save picture.png")),
    pad,
    h("div", { className: "strip", role: "group", "aria-label": `Examples: ${examples.source}` }, marks.map(([button]) => button)));
  return { box, take, open };
}
