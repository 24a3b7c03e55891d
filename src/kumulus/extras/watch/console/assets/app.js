// The page: its parts, and what passes between them.

import { Changes } from "./changes.js";
import { Fleet, bytes, counted, element, number, percent, short } from "./fleet.js";
import { Lately } from "./lately.js";
import { FleetMap } from "./map.js";
import { NodePanel, fetchNode } from "./node.js";
import { NodeTable } from "./table.js";

const part = (id) => document.getElementById(id);
const fleet = new Fleet();
const panel = new NodePanel(part("node"), (name) => peek(name));
const announce = (text) => (part("says").textContent = text);
const open = (name) => {
  panel.open(name);
  lately.again();
};
const peek = (name) => (lately.past ? lately.past.peek(name) : fetchNode(name));
const map = new FleetMap(fleet, { canvas: part("canvas"), tip: part("tip"), legend: part("legend"), announce, open, peek });
const table = new NodeTable(fleet, { place: part("list"), open, announce });
const lately = new Lately(fleet, { map, table, panel, announce, nodes: () => meant(), time: part("time"), jobs: part("jobs"), gantt: part("gantt") });
const MOST_REASONS = 5;
let stale = false;
let changes = null;
let words = [];

fleet.addEventListener("nodes", ({ detail: names }) => {
  stale = true;
  if (lately.past) return;
  map.changed(names);
  if (!names || names.has(panel.name)) panel.refresh();
});
fleet.addEventListener("state", () => {
  sums();
  lost();
  // A table that is drawn again four times a second cannot be read.
  if (stale && !lately.past) table.draw();
  stale = false;
  count();
});

// The nodes that are searched for, of the fleet now or at the moment that is shown; null without a search.
function found({ nodes } = lately.past ?? fleet) {
  return words.length ? [...nodes.values()].filter(map.matches).map(({ name }) => name) : null;
}

// The node that is open, or else those that are found.
function meant(of) {
  return panel.name ? [panel.name] : found(of);
}

function count() {
  put(part("found"), words.length ? `${number(found().length)} found` : "");
}

function sums() {
  const now = fleet.summary;
  if (!now) return;
  document.body.classList.remove("loading");
  if (fleet.changes && !changes) changes = new Changes(part("changes"), fleet.changes, () => meant(fleet) ?? []);
  document.title = `${fleet.stack} · Kumulus`;
  put(part("stack"), fleet.stack);
  const headline = headlineOf(now);
  put(part("headline"), headline);
  map.canvas.setAttribute("aria-label", `Fleet map, ${headline}`);
  shares(part("products"), now.byProduct);
  shares(part("zones"), now.byZone);
  const pods = Object.entries(now.podsByPhase).filter(([, count]) => count)
    .map(([phase, count]) => `${number(count)} ${phase}${phase === "Pending" ? ` (${number(now.unscheduled)} unscheduled)` : ""}`);
  if (now.notCreated) pods.push(`${number(now.notCreated)} not created`);
  put(part("phases"), `${pods.join(", ") || "no pods yet"} · ${now.boundPerSecond.toFixed(1)} bound/s`);
  const reasons = Object.entries(now.pendingReasons);
  const items = reasons.slice(0, MOST_REASONS).map(([reason, count]) => [`${number(count)} × ${short(reason)}`]);
  if (reasons.length > MOST_REASONS) items.push([`and ${counted(reasons.length - MOST_REASONS, "more reason")}`]);
  list(part("reasons"), items);
  list(part("checks"), Object.entries(now.controlPlane).map(([name, { status, detail }]) =>
    [`${name} ${status}${detail ? ` (${detail})` : ""}`, status === "ok" ? "" : "bad"]));
}

function headlineOf({ nodes, nodesByState, allocatable: { gpus }, allocated }) {
  const states = Object.entries(nodesByState).map(([state, count]) => `${number(count)} ${state}`).join(", ");
  const taken = gpus ? ` · ${counted(gpus, "GPU")}, ${number(allocated.gpus)} allocated (${percent(allocated.gpus, gpus)})` : "";
  return `${counted(nodes, "node")}${states ? ` (${states})` : ""}${taken}`;
}

// What did not change is left alone: who reads it with a screen reader stays where they are.
function put(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

function list(place, items) {
  place.hidden = !items.length;
  if (place.textContent === items.map(([text]) => text).join("")) return;
  place.replaceChildren(...items.map(([textContent, className = ""]) => element("li", { textContent, className })));
}

function shares(place, groups) {
  const rows = Object.entries(groups).map(([name, { nodes, allocatable, allocated }]) => {
    const gpus = allocatable.gpus || allocated.gpus;
    const [taken, whole] = gpus ? [allocated.gpus, allocatable.gpus] : [allocated.cpu, allocatable.cpu];
    const fill = element("i", { style: `width: ${whole ? Math.min(100, (100 * taken) / whole) : 0}%` });
    const text = gpus ? `${number(taken)} of ${number(whole)} GPUs` : `${number(Math.round(taken))} of ${number(Math.round(whole))} cores`;
    return element("tr", {},
      element("th", { scope: "row", textContent: short(name) }),
      element("td", { textContent: number(nodes) }),
      element("td", {}, element("span", { className: "bar", "aria-hidden": "true" }, fill)),
      element("td", { textContent: text, title: `${bytes(allocated.memory)} of ${bytes(allocatable.memory)} memory` }),
      element("td", { textContent: percent(taken, whole) }));
  });
  const heads = ["Name", "Nodes", "Bar", "Allocated", "Share"].map((text, index) =>
    element("th", { scope: "col", textContent: text, className: index === 0 || index === 2 ? "unseen" : "" }));
  const body = element("tbody", {}, ...rows);
  const old = place.querySelector("tbody");
  if (!old) place.append(element("thead", {}, element("tr", {}, ...heads)), body);
  else if (old.textContent !== body.textContent) old.replaceWith(body);
}

function lost() {
  const place = part("lost");
  const { lost: told } = fleet;
  const text = told ? (told.seconds === undefined ? told.why
    : `Nothing heard for a while, trying again; what is shown is how it was: ${told.why}.` +
      (fleet.remedy ? ` ${fleet.remedy}.` : "")) : "";
  put(place, text);
  place.hidden = !text;
}

function choose() {
  const { view, colour } = Object.fromEntries(new FormData(part("controls")));
  part("map").hidden = view !== "map";
  part("list").hidden = view !== "table";
  map.colours.mode = colour;
  words = part("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  map.matches = table.matches = (node) => words.every((word) => node.words.includes(word));
  lately.again();
  count();
  table.page = 0;
  if (view === "map") map.layout();
  else table.draw();
}

part("controls").addEventListener("input", choose);
part("controls").addEventListener("submit", (event) => event.preventDefault());
addEventListener("resize", () => map.layout());
fleet.listen();

// For measuring and testing from outside; paints are how long the last paintings took, in milliseconds.
globalThis.kumulus = {
  paints: () => [...map.paints],
  repaint: () => map.paint(),
  nodes: () => fleet.nodes.size,
  lately: () => lately,
  cells: () => map.placed,
  firstIn: (state) => map.placed.cells.find(({ name }) => fleet.nodes.get(name)?.state === state)?.name,
};
