// Time: a strip with what happened, a handle to drag, playing at any speed, and the events of the moment.

import { computed } from "./colours.js";
import { counted, element, legend, number } from "./fleet.js";
import { BOUND, EVICTED, FAILED, GONE, HAPPENED, NODE, POD, PREEMPTED, RUNNING, WAITING } from "./history.js";

const HEIGHT = 64;
const SPEEDS = [0.25, 0.5, 1, 2, 5, 10, 30, 100];
const SORTS = ["·", "fault", "resize", "scheduler"];
const MOST_EVENTS = 12;
const WORDS = ["", "waits", "is bound", "runs", "is preempted", "is evicted", "completed", "failed", "is gone"];

export function clock(milliseconds) {
  const exact = milliseconds < 600000;
  // Rounded first, or a minute has sixty seconds.
  const seconds = Math.round(Math.max(0, milliseconds) / (exact ? 100 : 1000)) / (exact ? 10 : 1);
  const hours = Math.floor(seconds / 3600);
  const rest = `${String(Math.floor(seconds / 60) % 60).padStart(hours ? 2 : 1, "0")}:${(seconds % 60).toFixed(exact ? 1 : 0).padStart(exact ? 4 : 2, "0")}`;
  return hours ? `${hours}:${rest}` : rest;
}

export class TimeLine {
  // histories: one, or two to be compared; move: told of the time, in milliseconds; live: whether time goes on.
  constructor(place, histories, { move, live = false, words = clock }) {
    Object.assign(this, { place, histories, move, live, words });
    this.following = live;
    this.speed = 1;
    this.playing = false;
    this.frames = [];
    this.build();
    this.span();
    this.at = live ? this.end : this.begin;
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  build() {
    const button = (text, onclick) => element("button", { type: "button", textContent: text, onclick });
    this.button = button("Play", () => this.toggle());
    this.now = element("output", { className: "clock" });
    this.range = element("input", { type: "range", step: "any", "aria-label": "Moment" });
    this.range.addEventListener("input", () => {
      this.following = false;
      this.want(Number(this.range.value));
    });
    const select = element("select", {}, ...SPEEDS.map((speed) => element("option", { value: speed, textContent: `${speed} ×`, selected: speed === 1 })));
    select.addEventListener("change", () => (this.speed = Number(select.value)));
    this.back = button("Now", () => this.follow());
    this.back.hidden = !this.live;
    this.canvas = element("canvas", { className: "strip", "aria-hidden": "true" });
    this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
    this.events = element("ol", { className: "events", "aria-label": "Events of the moment" });
    this.keys = element("p", { className: "key" },
      ...legend([["bindings", "bindings"], ["preemptions", "pods preempted, evicted or lost"], ["marks", "faults, resizes and what else was done"]]));
    this.place.replaceChildren(
      element("div", { className: "controls" }, this.button, element("label", {}, "Speed ", select), this.now, this.back, this.keys),
      element("div", { className: "track" }, this.canvas, this.range, this.ends = element("p", { className: "key ends", "aria-hidden": "true" })), this.events);
  }

  // The time that all of them tell of together.
  span() {
    this.begin = Math.min(...this.histories.map(({ begin }) => begin));
    this.end = Math.max(this.begin + 1, ...this.histories.map(({ end }) => end));
    this.range.min = this.begin;
    this.range.max = this.end;
    this.ends.replaceChildren(...[this.begin, this.end].map((at) => element("span", { textContent: this.words(at) })));
  }

  // --- moving ---

  want(at) {
    this.at = Math.max(this.begin, Math.min(this.end, at));
    // Several moves of a hand within one picture are one.
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.show();
    });
  }

  show() {
    const began = performance.now();
    this.range.value = this.at;
    this.range.setAttribute("aria-valuetext", this.words(this.at));
    this.now.textContent = this.following ? "now" : `${this.words(this.at)} of ${this.words(this.end)}`;
    this.move(this.at);
    this.tell();
    this.frames.push(performance.now() - began);
    if (this.frames.length > 300) this.frames.shift();
  }

  grab(event) {
    const { left, width } = this.canvas.getBoundingClientRect();
    const to = ({ clientX }) => {
      this.following = false;
      this.want(this.begin + ((clientX - left) / width) * (this.end - this.begin));
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.onpointermove = to;
    this.canvas.onpointerup = () => (this.canvas.onpointermove = null);
    to(event);
  }

  toggle() {
    this.playing = !this.playing;
    this.button.textContent = this.playing ? "Pause" : "Play";
    if (!this.playing) return;
    this.following = false;
    if (this.at >= this.end) this.at = this.begin;
    let last = performance.now();
    const step = (now) => {
      if (!this.playing) return;
      this.at = Math.min(this.end, this.at + (now - last) * this.speed);
      last = now;
      this.show();
      if (this.at < this.end) requestAnimationFrame(step);
      else this.toggle();
    };
    requestAnimationFrame(step);
  }

  follow() {
    if (this.playing) this.toggle();
    this.following = true;
    this.want(this.end);
  }

  // --- what is seen ---

  grew() {
    this.span();
    this.draw();
    if (this.following) this.want(this.end);
  }

  tell() {
    const items = this.histories.flatMap((history, index) => history.between(this.at - 2000, this.at, MOST_EVENTS)
      .map((event) => ({ at: event[0], text: `${this.words(event[0])}${this.histories.length > 1 ? ` ${"AB"[index]}` : ""} ${said(history, event)}` })));
    const text = items.map((item) => item.text).join();
    if (text === this.told) return;
    this.told = text;
    this.events.replaceChildren(...items.sort((a, b) => b.at - a.at).slice(0, MOST_EVENTS).map((item) => element("li", { textContent: item.text })));
  }

  draw() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const scale = devicePixelRatio || 1;
    this.canvas.width = width * scale;
    this.canvas.height = HEIGHT * scale;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    const colours = computed(["--bound", "--lost", "--mark", "--quiet"]);
    const high = HEIGHT / this.histories.length;
    this.histories.forEach((history, index) => this.strip(context, history, index * high, high, width, colours));
  }

  strip(context, history, top, high, width, colours) {
    const bins = Math.ceil(width / 2);
    const bound = new Array(bins).fill(0);
    const lost = new Array(bins).fill(0);
    const marks = [];
    const { events } = history;
    for (let n = 0; n < events.length; n += 5) {
      const bin = Math.min(bins - 1, Math.floor(((events[n] - this.begin) / (this.end - this.begin)) * bins));
      if (events[n + 1] === POD && events[n + 3] === BOUND) bound[bin]++;
      else if (events[n + 1] === POD && isLoss(history, n)) lost[bin]++;
      else if (events[n + 1] === HAPPENED) marks.push([bin * 2, events[n + 3]]);
    }
    const most = Math.max(1, ...bound, ...lost);
    if (this.histories.length > 1) {
      context.fillStyle = colours["--quiet"];
      context.font = `11px ${getComputedStyle(this.canvas).fontFamily}`;
      context.fillText("AB"[top ? 1 : 0], 0, top + 10);
    }
    // Few next to many are still to be seen, so heights go with the root.
    const tall = (count) => (count ? Math.max(2, Math.sqrt(count / most) * (high - 12)) : 0);
    context.fillStyle = colours["--bound"];
    bound.forEach((count, bin) => context.fillRect(bin * 2, top + high - tall(count), 2, tall(count)));
    context.fillStyle = colours["--lost"];
    lost.forEach((count, bin) => context.fillRect(bin * 2, top + high - tall(count), 2, tall(count)));
    context.fillStyle = colours["--mark"];
    for (const [at, sort] of marks) {
      context.fillRect(at, top + 8, 1, high - 8);
      // Whole at either end, too.
      const x = Math.max(5, Math.min(width - 5, at));
      context.beginPath();
      if (sort === 2) context.rect(x - 4, top, 8, 8);
      else {
        context.moveTo(x - 5, top);
        context.lineTo(x + 5, top);
        context.lineTo(x, top + 9);
      }
      context.fill();
    }
  }
}

// Taken from its node before its end: preempted, evicted, failed, or gone without a word.
function isLoss({ events, before }, n) {
  const status = events[n + 3];
  return status === PREEMPTED || status === EVICTED || (status >= FAILED && before[n / 5] >= BOUND && before[n / 5] <= RUNNING);
}

export function said(history, [, kind, what, one, other]) {
  if (kind === POD) {
    const reason = one === WAITING ? `: ${history.texts[other].split("\n")[0]}` : "";
    const name = history.pods[what][0];
    const own = `${history.about.namespace}/`;
    return `${name.startsWith(own) ? name.slice(own.length) : name} ${WORDS[one]}${reason}`;
  }
  if (kind === HAPPENED) return `${SORTS[one] ?? "·"}: ${history.texts[what]}`;
  if (kind === NODE) return `node ${history.nodes[what][0]} ${one < 0 ? "is gone" : `is ${history.conditions[one].slice(0, 2).filter(Boolean).join(": ")}`}`;
  if (kind === 3) return `queue ${history.queues[what][0]} changed`;
  return `job ${history.jobs[what][0]} ${one < 0 ? "is gone" : `asks for ${counted(history.facts[one][0], "pod")}`}`;
}
