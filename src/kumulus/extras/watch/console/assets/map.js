// The fleet as a picture: a canvas, since ten thousand elements would each cost the browser more than its pixels.

import { Colours, ink } from "./colours.js";
import { counted, said } from "./fleet.js";
import { arrange } from "./layout.js";
import { Tip } from "./tip.js";

export class FleetMap {
  constructor(fleet, { canvas, tip, legend, announce, open, peek, share = 1 }) {
    Object.assign(this, { fleet, canvas, announce, open, share });
    this.colours = new Colours(fleet, legend);
    this.tip = new Tip(fleet, { place: tip, canvas, peek });
    this.matches = () => true;
    // The nodes of a chosen job, those with room for more of it, and those where something would have to be free for it,
    // by name; null when none is chosen.
    this.lit = null;
    this.room = null;
    this.free = null;
    this.at = -1;
    this.index = new Map();
    this.placed = { cells: [], heads: [], racks: [], starts: [], size: 1, height: 1 };
    this.scheduled = false;
    this.paints = [];
    this.dirty = null;
    canvas.addEventListener("keydown", (event) => this.key(event));
    // A click gives the focus as well, and says itself which node is meant.
    canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && this.move(Math.max(0, this.at)));
    canvas.addEventListener("blur", () => this.paint());
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.tip.hide());
    canvas.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => canvas.parentElement.clientWidth !== this.width && this.layout()).observe(canvas.parentElement);
    for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
      matchMedia(query).addEventListener("change", () => this.recolour());
    }
  }

  // --- what is where ---

  layout() {
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    this.width = width;
    const top = this.canvas.getBoundingClientRect().top + scrollY;
    const height = Math.max(360, this.share < 1 ? innerHeight * this.share : innerHeight - top - 40);
    const name = this.placed.cells[this.at]?.name;
    this.placed = arrange(this.fleet.nodes.values(), width, height);
    this.index = new Map(this.placed.cells.map((cell, index) => [cell.name, index]));
    this.at = this.index.get(name) ?? (this.at < 0 ? -1 : 0);
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.placed.height * scale);
    this.canvas.style.height = `${this.placed.height}px`;
    this.recolour();
  }

  changed(names) {
    if (this.fleet.moved) {
      this.fleet.moved = false;
      this.layout();
    } else if (names && this.dirty !== "all") {
      this.dirty = this.dirty ?? new Set();
      names.forEach((name) => this.dirty.add(name));
      this.schedule();
    } else {
      this.paint();
    }
  }

  // Another fleet, or the same one at another time.
  show(fleet) {
    if (this.fleet === fleet) return;
    this.fleet = this.colours.fleet = this.tip.fleet = fleet;
    this.layout();
  }

  light(lit, room = null, free = null) {
    const same = (a, b) => a === b || (a && b && a.size === b.size && [...a].every((name) => b.has(name)));
    if (same(lit, this.lit) && same(room, this.room) && same(free, this.free)) return;
    this.lit = lit;
    this.room = room;
    this.free = free;
    this.paint();
  }

  recolour() {
    this.colours.read();
    this.font = getComputedStyle(document.body).fontFamily;
    this.paint();
  }

  // --- drawing ---

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      const began = performance.now();
      this.draw(this.dirty);
      this.dirty = null;
      this.paints.push(performance.now() - began);
      if (this.paints.length > 100) this.paints.shift();
    });
  }

  paint() {
    this.dirty = "all";
    this.schedule();
  }

  draw(names) {
    const context = this.canvas.getContext("2d");
    const scale = devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    if (names instanceof Set) {
      for (const name of names) {
        const cell = this.placed.cells[this.index.get(name)];
        if (cell) this.cell(context, cell);
      }
    } else {
      context.clearRect(0, 0, this.canvas.width / scale, this.placed.height);
      this.heads(context);
      for (const cell of this.placed.cells) this.cell(context, cell);
    }
    this.cursor(context);
  }

  heads(context) {
    context.textBaseline = "alphabetic";
    for (const { x, y, zone, text, count, wide } of this.placed.heads) {
      context.font = zone ? `bold 14px ${this.font}` : `12px ${this.font}`;
      context.fillStyle = this.colours.values[zone ? "--text" : "--quiet"];
      // A name that is too long gives way to its neighbour's, from its middle.
      const named = (letters) => `${letters < text.length ? `${text.slice(0, Math.ceil(letters / 2))}…${text.slice(text.length - Math.floor(letters / 2))}` : text} · ${counted(count, "node")}`;
      let letters = Math.min(text.length, 80);
      while (letters > 2 && context.measureText(named(letters)).width > wide) letters--;
      context.fillText(named(letters), x, y + (zone ? 17 : 12));
    }
    context.strokeStyle = this.colours.values["--line"];
    context.lineWidth = 1;
    for (const { x, y, width, height } of this.placed.racks) context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  }

  cell(context, { name, x, y }) {
    const node = this.fleet.nodes.get(name);
    if (!node) return;
    const size = this.placed.size;
    // What is half-transparent is drawn on a clean ground.
    context.fillStyle = this.colours.values["--page"];
    context.fillRect(x, y, size, size);
    if (node.state === "gone") {
      context.strokeStyle = this.colours.values["--line"];
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      return;
    }
    context.globalAlpha = this.matches(node) && (!this.lit || this.lit.has(name)) ? 1 : 0.15;
    const colour = this.colours.of(node);
    context.fillStyle = colour;
    context.fillRect(x, y, size, size);
    context.strokeStyle = ink(colour);
    if (node.state !== "ready") this.mark(context, node.state, x, y, size);
    context.globalAlpha = 1;
    if (this.room?.has(name) || this.free?.has(name)) {
      context.strokeStyle = this.colours.values["--focus"];
      context.lineWidth = 1;
      if (!this.room?.has(name)) context.setLineDash([2, 2]);
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      context.setLineDash([]);
    }
  }

  // Ill nodes have a mark in every mode, for eyes that do not tell the colours apart.
  mark(context, state, x, y, size) {
    context.lineWidth = size > 10 ? 2 : 1;
    context.beginPath();
    if (state === "cordoned") {
      context.moveTo(x + 1, y + size / 2);
      context.lineTo(x + size - 1, y + size / 2);
    } else {
      context.moveTo(x + 1, y + size - 1);
      context.lineTo(x + size - 1, y + 1);
      if (state === "not ready") {
        context.moveTo(x + 1, y + 1);
        context.lineTo(x + size - 1, y + size - 1);
      }
    }
    context.stroke();
  }

  cursor(context) {
    const cell = this.placed.cells[this.at];
    if (!cell || document.activeElement !== this.canvas) return;
    context.strokeStyle = this.colours.values["--focus"];
    context.lineWidth = 3;
    context.strokeRect(cell.x - 2, cell.y - 2, this.placed.size + 4, this.placed.size + 4);
  }

  // --- keys and pointer ---

  key(event) {
    const { cells } = this.placed;
    const moves = {
      ArrowRight: () => this.at + 1,
      ArrowLeft: () => this.at - 1,
      ArrowDown: () => this.neighbour(1),
      ArrowUp: () => this.neighbour(-1),
      Home: () => 0,
      End: () => cells.length - 1,
      PageDown: () => this.placed.starts.find((start) => start > this.at) ?? this.at,
      PageUp: () => this.placed.starts.findLast((start) => start < this.at) ?? 0,
    };
    if (event.key === "Enter" || event.key === " ") {
      this.tip.hide();
      if (cells[this.at]) this.open(cells[this.at].name);
    } else if (event.key === "Escape") {
      this.tip.hide();
      return;
    } else if (moves[event.key]) {
      this.move(moves[event.key]());
    } else {
      return;
    }
    event.preventDefault();
  }

  neighbour(sign) {
    const here = this.placed.cells[this.at];
    if (!here) return 0;
    let best = this.at;
    let least = Infinity;
    this.placed.cells.forEach((cell, index) => {
      const down = (cell.y - here.y) * sign;
      // The next row first, and in it the nearest.
      const distance = down * 1000 + Math.abs(cell.x - here.x);
      if (down > 0 && distance < least) [best, least] = [index, distance];
    });
    return best;
  }

  move(index) {
    const { cells, size } = this.placed;
    if (!cells.length) return;
    this.at = Math.max(0, Math.min(cells.length - 1, index));
    const cell = cells[this.at];
    const node = this.fleet.nodes.get(cell.name);
    const place = [node.zone && `zone ${node.zone}`, node.rack && `rack ${node.rack}`].filter(Boolean).join(", ");
    this.announce(`${said(node)}${place ? `; ${place}` : ""}`);
    const top = this.canvas.getBoundingClientRect().top + cell.y;
    if (top < 0 || top + size > innerHeight) scrollBy(0, top - innerHeight / 2);
    this.tip.show(cell, size);
    this.paint();
  }

  find(event) {
    const { cells, size } = this.placed;
    const slack = size > 8 ? 2 : 1;
    const index = cells.findIndex(({ x, y }) =>
      event.offsetX >= x && event.offsetX < x + size + slack && event.offsetY >= y && event.offsetY < y + size + slack);
    return index;
  }

  hover(event) {
    const index = this.find(event);
    this.canvas.style.cursor = index < 0 ? "default" : "pointer";
    if (index < 0) this.tip.hide();
    else this.tip.show(this.placed.cells[index], this.placed.size);
  }

  click(event) {
    const index = this.find(event);
    if (index < 0) return;
    this.at = index;
    this.paint();
    this.open(this.placed.cells[index].name);
  }
}
