// A pad to draw a digit on, brought to the frame that the model's pictures have.
import { h } from "./dom.js";

const SIDE = 280;
const WHOLE = 112;

/** Finds the drawn box: left, top, width, height; null where nothing is drawn. */
function drawnBox(context) {
  const { data } = context.getImageData(0, 0, SIDE, SIDE);
  let [left, top, right, bottom] = [SIDE, SIDE, -1, -1];
  for (let y = 0, at = 0; y < SIDE; y += 1) {
    for (let x = 0; x < SIDE; x += 1, at += 4) {
      if (data[at] > 40) {
        left = Math.min(left, x);
        right = Math.max(right, x);
        top = Math.min(top, y);
        bottom = y;
      }
    }
  }
  return right < 0 ? null : [left, top, right - left + 1, bottom - top + 1];
}

/** Makes the pad. `drawn` is told the drawing while it grows, as a PNG in base64. */
export function drawingPad(size, drawn) {
  const canvas = h("canvas", { className: "pad", width: SIDE, height: SIDE, role: "img", "aria-label": "Drawing pad: draw with mouse, pen or finger" });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const framed = h("canvas", { width: WHOLE, height: WHOLE });
  let last = null;

  // the small digits fill their frame; those of MNIST a box of 20 in 28 pixels
  const share = size <= 8 ? 1 : 20 / 28;
  const tell = () => {
    const box = drawnBox(context);
    const target = framed.getContext("2d");
    target.fillStyle = "#000";
    target.fillRect(0, 0, WHOLE, WHOLE);
    if (box) {
      const [left, top, width, height] = box;
      const scale = (share * WHOLE) / Math.max(width, height);
      target.imageSmoothingQuality = "high";
      target.drawImage(canvas, left, top, width, height,
        (WHOLE - width * scale) / 2, (WHOLE - height * scale) / 2, width * scale, height * scale);
    }
    drawn(framed.toDataURL("image/png").split(",")[1]);
  };
  const clear = () => {
    context.fillStyle = "#000";
    context.fillRect(0, 0, SIDE, SIDE);
  };
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * SIDE) / box.width, ((event.clientY - box.top) * SIDE) / box.height];
  };
  const line = (from, to) => {
    Object.assign(context, { strokeStyle: "#fff", lineWidth: 30, lineCap: "round", lineJoin: "round" });
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = place(event);
    line(last, last);
    tell();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    const next = place(event);
    line(last, next);
    last = next;
    tell();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { last = null; });
  clear();
  return h("div", { className: "stack" }, canvas,
    h("div", { className: "row" }, h("button", { className: "small", onclick: clear }, "Clear the pad")));
}
