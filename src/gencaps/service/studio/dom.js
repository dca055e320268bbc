// Builds the page: small helpers without state.

/** Makes an element: properties by name, on* as listeners, data-* and aria-* as attributes; null children are left out. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("aria-")) {
      element.setAttribute(name, String(value));
      continue;
    }
    if (value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Shows a PNG in base64. */
export const show = (data, alt, properties = {}) => h("img", { alt, src: source(data), draggable: false, ...properties });
export const source = (data) => `data:image/png;base64,${data}`;

let fading = 0;
/** Says something to everybody, also to those who listen. */
export function say(text, bad = false) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.toggle("bad", bad);
  clearTimeout(fading);
  if (text) fading = setTimeout(() => { status.textContent = ""; }, bad ? 9000 : 3000);
}

/** Makes bars of how surely each is there, 0 to 1; gives the list and a function that sets them. */
export function bars(names, label) {
  const rows = names.map((name) => {
    const fill = h("i");
    const term = h("dt", {}, name);
    const number = h("dd", { className: "number" });
    return { term, fill, number, box: h("dd", {}, h("div", { className: "bar", "aria-hidden": "true" }, fill)) };
  });
  const list = h("dl", { className: "bars", "aria-label": label }, rows.flatMap((r) => [r.term, r.box, r.number]));
  const set = (values) => {
    const top = Math.max(...values);
    rows.forEach((row, k) => {
      row.fill.style.width = `${100 * values[k]}%`;
      row.number.textContent = `${(100 * values[k]).toFixed(1)} %`;
      row.term.classList.toggle("top", values[k] === top);
    });
  };
  return { list, set };
}

/** Makes a group of which one is chosen. */
export function three(name, legend, choices, chosen, changed) {
  return h("div", { className: "three", role: "radiogroup", "aria-label": legend }, choices.map(([value, text]) =>
    h("label", {}, h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => changed(value) }), text)));
}

/** Makes a slider with its number beside it. */
export function slider(label, from, to, step, value, moved, digits = 2) {
  const number = h("output", { className: "number" }, value.toFixed(digits));
  const input = h("input", { type: "range", min: from, max: to, step, value, "aria-label": label, oninput: () => {
    number.textContent = input.valueAsNumber.toFixed(digits);
    moved(input.valueAsNumber);
  } });
  return { input, number };
}

/** Makes a seed field with a button that draws another one. */
export function seedField(seed, changed) {
  const input = h("input", { type: "number", min: 0, max: 2 ** 31, step: 1, value: seed, onchange: () => set(input.valueAsNumber || 0) });
  const set = (value) => {
    input.value = Math.max(0, Math.floor(value));
    changed(input.valueAsNumber);
  };
  return h("div", { className: "row" }, h("label", {}, "Seed ", input),
    h("button", { onclick: () => set(Math.floor(Math.random() * 1e6)) }, "Another seed"));
}
