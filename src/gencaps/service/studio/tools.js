// What every result offers: a file, the same in Python, the same as a command, a link.
import { h, say } from "./dom.js";
import { changed, link } from "./state.js";

export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

export const fromBase64 = (data, kind = "image/png") =>
  new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], { type: kind });

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // not every address may use the clipboard: the text stands below to be marked by hand
    return false;
  }
}

/** Makes the row of buttons under a result. `files` are [label, name, () => Promise<Blob>]. */
export function tools({ files, python, command }) {
  const code = h("pre", { className: "code", hidden: true, tabIndex: 0, "aria-label": "Copied text" });
  const tell = async (text, what) => {
    code.textContent = text;
    code.hidden = false;
    say((await copy(text)) ? `${what} is copied.` : `${what} stands below.`);
  };
  const saving = files.map(([label, name, make]) => h("button", { onclick: async () => {
    try {
      save(await make(), name);
      say(`${name} is saved.`);
    } catch (error) {
      say(error.message, true);
    }
  } }, label));
  const bar = h("div", { className: "tools", role: "group", "aria-label": "Take this result along" }, saving,
    h("button", { onclick: () => tell(python(), "The Python") }, "Copy as Python"),
    h("button", { onclick: () => tell(command(), "The command") }, "Copy as command"),
    h("button", { onclick: () => { changed(); tell(link(), "The link"); } }, "Copy link"));
  return h("div", { className: "stack" }, bar, code);
}

/** Writes Python that begins with loading the model. */
export const python = (model, ...lines) =>
  ["import gencaps", "", `model = gencaps.load(${JSON.stringify(model)})`, ...lines, ""].join("\n");

/** Writes a value as Python does. */
export function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value && typeof value === "object") {
    return `{${Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${literal(v)}`).join(", ")}}`;
  }
  return value === true ? "True" : value === false ? "False" : value === null ? "None" : JSON.stringify(value);
}

/** Quotes a word for a shell where that is needed. */
export const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
