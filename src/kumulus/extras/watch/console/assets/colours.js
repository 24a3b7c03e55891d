// What the squares' colours mean, in both themes, and the legend that says so.

import { STATES, element, short } from "./fleet.js";

const PRODUCTS = 8;
const STATE_COLOURS = { ready: "--ready", cordoned: "--cordoned", faulted: "--faulted", "not ready": "--ill" };
const STATE_MARKS = { ready: "", cordoned: "–", faulted: "/", "not ready": "×" };
const SHARES = [
  ["--a0", "free", (share) => share === 0],
  ["--a1", "under half", (share) => share < 0.5],
  ["--a2", "half or more", (share) => share < 0.9],
  ["--a3", "nine tenths or more", (share) => share < 1],
  ["--a4", "full", () => true],
];
const NAMES = ["--text", "--quiet", "--line", "--page", "--focus", ...Object.values(STATE_COLOURS),
  ...SHARES.map(([name]) => name), ...Array.from({ length: PRODUCTS }, (_, n) => `--p${n}`)];

export class Colours {
  constructor(fleet, legend) {
    Object.assign(this, { fleet, legend });
    this.mode = "allocation";
    this.values = {};
    this.byProduct = new Map();
  }

  // The colours as the theme has them now, and the products as the fleet has them.
  read() {
    this.values = computed(NAMES);
    const products = [...new Set([...this.fleet.nodes.values()].map((node) => node.product).filter(Boolean))].sort();
    this.byProduct = new Map(products.map((name, n) => [name, `--p${n % PRODUCTS}`]));
    this.explain();
  }

  of(node) {
    if (this.mode === "condition") return this.values[STATE_COLOURS[node.state]];
    if (this.mode === "product") return this.values[this.byProduct.get(node.product) ?? "--a0"];
    return this.values[SHARES.find(([, , holds]) => holds(node.share))[0]];
  }

  explain() {
    const entry = (colour, text, mark = "") => {
      const style = `background: var(${colour}); color: ${ink(this.values[colour])}`;
      return element("li", {}, element("i", { style, textContent: mark, "aria-hidden": "true" }), short(text));
    };
    const entries = {
      allocation: () => SHARES.map(([colour, text]) => entry(colour, text)),
      condition: () => STATES.map((state) => entry(STATE_COLOURS[state], state, STATE_MARKS[state])),
      product: () => [...[...this.byProduct].map(([name, colour]) => entry(colour, name)), entry("--a0", "no GPU")],
    };
    const gone = this.fleet.comeAndGo ? [entry("--page", "not there")] : [];
    this.legend.replaceChildren(...entries[this.mode](), ...gone);
  }
}

// Colours of the style sheet as the theme has them now, by name.
export function computed(names) {
  // A custom property is text; only a real one is computed, with light-dark() decided.
  const probe = document.body.appendChild(element("i"));
  const found = {};
  for (const name of names) {
    probe.style.color = `var(${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

const INKS = new Map();

// Black or white, whichever is better seen on a colour: w3.org/TR/WCAG22/#dfn-relative-luminance
export function ink(colour) {
  if (!INKS.has(colour)) {
    const [r, g, b] = colour.match(/[\d.]+/g).map((part) => {
      const value = part / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    INKS.set(colour, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#10151a" : "#ffffff");
  }
  return INKS.get(colour);
}
