// Puts the page together: the models, the panels that the chosen one can fill, the link.
import { analyse } from "./analyse.js";
import { capsules } from "./capsules.js";
import { h, say } from "./dom.js";
import { edit } from "./edit.js";
import { explain } from "./explain.js";
import { generate } from "./generate.js";
import { interpolate } from "./interpolate.js";
import { ask, examplesOf, listModels, setKey } from "./service.js";
import { changed, readLink, state } from "./state.js";

const PANELS = { analyse, generate, edit, interpolate, explain, capsules };
const [choice, about, tabs, main] = ["model", "about", "tabs", "panel"].map((id) => document.getElementById(id));
const examples = {};
let models = [];

const model = () => models.find((one) => one.id === state.model);
const panels = () => Object.keys(PANELS).filter((name) => PANELS[name].fits(model()));

async function start() {
  try {
    models = await listModels();
  } catch (error) {
    return error.status === 401 ? askKey() : fail(`The service does not answer: ${error.message}`);
  }
  if (!models.length) return fail("No model is served: start gencaps serve with a model.");
  readLink();
  choice.replaceChildren(...models.map((one) => h("option", { value: one.id }, one.id)));
  choice.onchange = () => openModel(choice.value, state.panel);
  window.addEventListener("hashchange", () => {
    readLink();
    openModel(state.model, state.panel, true);
  });
  return openModel(state.model, state.panel, true);
}

function fail(text) {
  main.replaceChildren(h("p", { className: "error" }, text));
  main.ariaBusy = "false";
}

function askKey() {
  const key = h("input", { type: "password", autocomplete: "off", required: true });
  main.replaceChildren(h("form", { className: "row", onsubmit: (event) => {
    event.preventDefault();
    setKey(key.value);
    start();
  } }, h("label", {}, "This service asks for its API key ", key), h("button", { className: "main" }, "Go on")));
  key.focus();
}

/** Opens a model; pictures and settings of another model are left behind unless a link brought them. */
async function openModel(id, panel, linked = false) {
  state.model = models.some((one) => one.id === id) ? id : models[0].id;
  choice.value = state.model;
  const one = model();
  const colours = one.channels === 1 ? "grey" : "colour";
  about.textContent = `${one.title}, trained on ${one.data}: ${one.size} x ${one.size} px, ${colours}, ${one.parameters.toLocaleString("en")} weights.`;
  main.ariaBusy = "true";
  try {
    examples[one.id] ??= await examplesOf(one.id);
  } catch (error) {
    return fail(error.message);
  }
  if (!linked) {
    state.settings = {};
    state.other = "";
  }
  await bringPicture(one, linked);
  const known = panels();
  drawTabs(known);
  return openPanel(known.includes(panel) ? panel : known[0], false);
}

/** Keeps the picture of the last model where this one can take it; begins with an example otherwise. */
async function bringPicture(one, linked) {
  const first = examples[one.id].pictures[0] ?? "";
  for (const which of ["picture", "other"]) {
    if (!state[which]) continue;
    try {
      state[which] = linked && one.can.includes("fit") ? (await ask(one.id, "fit", { picture: state[which] })).pictures[0] : "";
    } catch {
      state[which] = "";
      say("The picture in the link cannot be read.", true);
    }
  }
  state.picture ||= first;
}

function drawTabs(known) {
  tabs.replaceChildren(...known.map((name) => h("button", {
    role: "tab", id: `tab-${name}`, "aria-controls": "panel", onclick: () => openPanel(name),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = known[(known.indexOf(name) + step + known.length) % known.length];
      openPanel(next);
      document.getElementById(`tab-${next}`).focus();
    },
  }, PANELS[name].title)));
}

function openPanel(name, focus = false) {
  state.panel = name;
  for (const tab of tabs.children) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
  }
  main.setAttribute("aria-labelledby", `tab-${name}`);
  const go = { to: (panel) => openPanel(panel, true), panels, title: (panel) => PANELS[panel].title };
  main.replaceChildren(h("p", { className: "lead" }, PANELS[name].lead), PANELS[name].build(model(), examples[state.model], go));
  main.ariaBusy = "false";
  if (focus) main.focus();
  document.title = `${PANELS[name].title} · gencaps studio`;
  changed();
}

start();
