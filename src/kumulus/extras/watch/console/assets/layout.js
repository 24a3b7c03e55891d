// Where each node is drawn: zones one below the other, in them groups, in these racks, in these nodes. No drawing here.

import { compare } from "./fleet.js";

const ZONE_HEAD = 24;
const GROUP_HEAD = 17;
const INDENT = 10;
const BETWEEN = 16;
const NARROWEST = 150;
const LARGEST = 26;
const SMALLEST = 5;

export function arrange(nodes, width, height) {
  const zones = grouped(nodes);
  let size = LARGEST;
  let placed = place(zones, width, size);
  while (placed.height > height && size > SMALLEST) {
    // Area goes with the square of the size; headings do not shrink, so it is approached step by step.
    size = Math.max(SMALLEST, Math.min(size - 1, Math.floor(size * Math.sqrt(height / placed.height))));
    placed = place(zones, width, size);
  }
  while (size < LARGEST) {
    const larger = place(zones, width, size + 1);
    if (larger.height > height) break;
    placed = larger;
    size += 1;
  }
  return placed;
}

function grouped(nodes) {
  const zones = new Map();
  for (const node of nodes) {
    const groups = into(zones, node.zone, () => new Map());
    const racks = into(groups, node.group, () => new Map());
    into(racks, `${node.block} ${node.rack}`, () => []).push(node);
  }
  const sorted = (map) => [...map].sort(([a], [b]) => compare(a, b));
  return sorted(zones).map(([zone, groups]) => ({
    zone,
    groups: sorted(groups).map(([group, racks]) => ({
      group,
      racks: sorted(racks).map(([key, found]) => ({
        rack: key.split(" ")[1],
        nodes: found.sort((a, b) => compare(a.name, b.name)),
      })),
    })),
  }));
}

function into(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

function place(zones, width, size) {
  const made = { cells: [], heads: [], racks: [], starts: [], size, step: size + (size > 8 ? 2 : 1), gap: size > 8 ? 6 : 4 };
  let y = 0;
  for (const { zone, groups } of zones) {
    made.heads.push({ x: 0, y, zone: true, text: zone ? `zone ${zone}` : "no zone", count: sum(groups.map(amount)), wide: width });
    y += ZONE_HEAD;
    for (const row of rows(groups, width - INDENT)) {
      let x = INDENT;
      let below = y;
      for (const { group, wide } of row) {
        made.heads.push({ x, y, zone: false, text: group.group || "no group", count: amount(group), wide: Math.min(wide + BETWEEN - 4, width - x) });
        made.starts.push(made.cells.length);
        below = Math.max(below, fill(made, group.racks, x, y + GROUP_HEAD, wide));
        x += wide + BETWEEN;
      }
      y = below + 6;
    }
    y += 4;
  }
  return { ...made, height: Math.max(y, 1) };
}

const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
const amount = ({ racks }) => sum(racks.map(({ nodes }) => nodes.length));

// A zone's groups side by side, as wide as they have nodes, in as many rows as that takes.
function rows(groups, width) {
  const most = Math.max(1, Math.floor(width / NARROWEST));
  const found = [];
  for (let first = 0; first < groups.length; first += most) {
    const part = groups.slice(first, first + most);
    const free = width - BETWEEN * (part.length - 1) - NARROWEST * part.length;
    const all = sum(part.map(amount));
    found.push(part.map((group) => ({ group, wide: NARROWEST + Math.floor((Math.max(0, free) * amount(group)) / all) })));
  }
  return found;
}

function fill({ cells, racks, size, step, gap }, found, left, y, width) {
  let x = left;
  let tall = 0;
  for (const { rack, nodes } of found) {
    const columns = rack ? Math.ceil(Math.sqrt(nodes.length)) : Math.max(1, Math.floor(width / step));
    const wide = Math.min(columns, nodes.length) * step;
    const high = Math.ceil(nodes.length / columns) * step;
    if (x > left && x + wide > left + width) {
      x = left;
      y += tall + gap;
      tall = 0;
    }
    nodes.forEach(({ name }, index) => {
      cells.push({ name, x: x + (index % columns) * step, y: y + Math.floor(index / columns) * step });
    });
    if (rack) racks.push({ x: x - 2, y: y - 2, width: wide + 4 - (step - size), height: high + 4 - (step - size) });
    x += wide + gap;
    tall = Math.max(tall, high);
  }
  return y + tall;
}
