// What is shown, and the link that shows it again.

/** The panel and its settings; picture and other are PNG files of the model's size, in base64. */
export const state = { model: "", panel: "", picture: "", other: "", settings: {} };

export function readLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  for (const name of ["model", "panel", "picture", "other"]) state[name] = (link.get(name) ?? "").replaceAll(" ", "+");
  try {
    state.settings = { [state.panel]: JSON.parse(link.get("settings") ?? "{}") };
  } catch {
    state.settings = {};
  }
}

export function link() {
  const words = new URLSearchParams({ model: state.model, panel: state.panel });
  const settings = JSON.stringify(state.settings[state.panel] ?? {});
  if (settings !== "{}") words.set("settings", settings);
  if (state.picture) words.set("picture", state.picture);
  if (state.other && state.panel === "interpolate") words.set("other", state.other);
  return `${location.origin}${location.pathname}#${words}`;
}

let writing = 0;
/** Keeps the address bar in step; browsers refuse to be told too often. */
export function changed() {
  clearTimeout(writing);
  writing = setTimeout(() => history.replaceState(null, "", link()), 250);
}

/** Gives the settings of a panel, with what it begins with. */
export function settings(panel, first) {
  const found = state.settings[panel];
  const fitting = found && typeof found === "object" && !Array.isArray(found) ? found : {};
  state.settings[panel] = { ...first, ...fitting };
  return state.settings[panel];
}
