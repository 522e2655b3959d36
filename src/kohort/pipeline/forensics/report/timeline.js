/* Charts over time: the owner of each partition, the lag of the group, and the duration of each
   rebalance. All charts are redrawn when the width changes. */

const KINDS = {
  joined: ["member-joined", "instance-restarted"],
  left: ["member-left", "member-removed"],
  changed: ["subscription-changed", "leader-rejoined", "protocol-changed"],
};
const kindOf = (trigger) =>
  Object.keys(KINDS).find((kind) => KINDS[kind].includes(trigger)) || "failed";

/* Shapes as well as colours: up for joins, down for leaves, a cross for failures. */
const SHAPES = {
  joined: "M0-5.5L5.5 4.5H-5.5Z",
  left: "M0 5.5L5.5-4.5H-5.5Z",
  changed: "M0-6L6 0L0 6L-6 0Z",
  failed: "M-5-2L-2-5L0-3L2-5L5-2L3 0L5 2L2 5L0 3L-2 5L-5 2L-3 0Z",
};
const KIND_WORDS = { joined: "a member joined", left: "a member left", changed: "subscription or protocol changed", failed: "a member failed" };

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 5e3, 15e3, 30e3, 6e4, 3e5, 9e5, 18e5, 36e5,
  108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6];

function axis(x, [from, to], width, y) {
  const step = STEPS.find((each) => (to - from) / each <= width / 60) || STEPS.at(-1);
  const ticks = [];
  for (let at = Math.ceil((head.since + from) / step) * step - head.since; at <= to; at += step) {
    const words = iso(at);
    const text = step >= 864e5 ? words.slice(5, 10) : step >= 6e4 ? words.slice(11, 16)
      : step >= 1e3 ? words.slice(11, 19) : words.slice(14, 23);
    ticks.push(s("path", { class: "axis", d: `M${x(at).toFixed(1)} ${y}v5`, fill: "none" }),
      s("text", { x: x(at).toFixed(1), y: y + 17, "text-anchor": "middle" }, text));
  }
  return ticks;
}

const rect = (x, y, w, height) => `M${x.toFixed(1)} ${y}h${w.toFixed(1)}v${height}h${(-w).toFixed(1)}z`;
const atLeast = (from, to, least) => [from, Math.max(to, from + least)];
const startOf = (each) => each.started_ms ?? each.ended_ms;
const endOf = (each) => each.ended_ms ?? each.started_ms;

/* The owner of each partition over time. Calls `select` with the rebalance under the pointer. */
class Timeline {
  constructor(group, rebalances, select) {
    Object.assign(this, { group, rebalances, select });
    this.whole = [group.shown_from, Math.max(head.until - head.since, group.shown_from + 1)];
    this.view = this.whole;
    this.chosen = -1;
    this.ends = this.lastEnds();
    this.hasGaps = group.ownership.some(([, , , gap]) => gap > 0)
      || [...this.ends.values()].some((end) => end < this.whole[1]);
    this.picture = s("svg", {
      tabindex: "0", role: "application", "aria-describedby": "rebalance-text",
      "aria-label": `Timeline of ${counted(rebalances.length, "rebalance")} over ${counted(group.partitions.length, "partition")}. `
        + "Left and right select the previous and next rebalance, plus and minus zoom, zero shows all.",
    });
    this.lag = s("svg", { role: "img", "aria-label": this.lagWords() });
    this.element = h("div", { class: "plot" }, this.picture, group.lag.length ? this.lag : null);
    this.picture.addEventListener("keydown", (event) => this.key(event));
    this.picture.addEventListener("pointermove", (event) => this.point(event));
    this.picture.addEventListener("pointerdown", (event) => this.press(event));
    this.picture.addEventListener("pointerup", (event) => this.release(event));
    this.picture.addEventListener("pointerleave", () => { tip.hidden = true; });
    this.lag.addEventListener("pointermove", (event) => this.pointLag(event));
    this.lag.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  /* The end of the last ownership of each row. */
  lastEnds() {
    const ends = new Map();
    for (const [, , end, , runs] of this.group.ownership) {
      for (let i = 0; i < runs.length; i += 2) {
        for (let row = runs[i]; row < runs[i] + runs[i + 1]; row += 1) {
          ends.set(row, Math.max(ends.get(row) ?? 0, end ?? Infinity));
        }
      }
    }
    return ends;
  }

  lagWords() {
    const most = Math.max(0, ...this.group.lag.map(([, records]) => records));
    const last = this.group.lag.at(-1);
    return last ? `Lag over time: at most ${counted(most, "record")}, ${number(last[1])} at the end.` : "";
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width) return;
    const rows = this.group.partitions.length;
    const cap = width < 560 ? 76 : 190;
    const longest = Math.max(0, ...this.group.partitions.map((place) => place.length));
    this.gutter = rows ? Math.min(cap, Math.max(44, longest * 6.3 + 10)) : 44;
    this.top = 34;
    this.step = rows <= 16 ? 16 : rows <= 32 ? 12 : 9;
    this.width = width - this.gutter - 20;
    const bottom = this.top + Math.max(rows, 1) * this.step + 2;
    this.height = bottom + 24;
    const [from, to] = this.view;
    this.x = (ms) => this.gutter + ((ms - from) / (to - from)) * this.width;
    this.at = (x) => from + ((x - this.gutter) / this.width) * (to - from);
    const clip = s("clipPath", { id: "plot" }, s("rect", { x: this.gutter, y: 0, width: this.width, height: bottom }));
    this.picture.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.picture.setAttribute("height", this.height);
    this.picture.replaceChildren(clip, ...this.labels(cap),
      s("g", { "clip-path": "url(#plot)" }, ...this.ownership(bottom), ...this.bands(bottom)), ...this.marks(),
      ...axis(this.x, this.view, this.width, bottom));
    if (this.group.lag.length) this.drawLag(width);
  }

  labels(cap) {
    const room = Math.floor((cap - 10) / 6.3);
    return this.group.partitions.map((place, row) => {
      if (this.step < 12 && row % 2) return null;
      const words = place.length > room ? `…${place.slice(1 - room)}` : place;
      return s("text", { x: this.gutter - 6, y: this.top + row * this.step + this.step - 5, "text-anchor": "end" },
        words, s("title", {}, place));
    }).filter(Boolean);
  }

  /* One path for each colour, for any number of partitions. */
  ownership(bottom) {
    const [from, to] = this.view;
    const thick = this.step - 2;
    const held = {};
    const gaps = [];
    const paint = (list, begin, end, runs, least) => {
      if (end < from || begin > to) return;
      const [a, b] = atLeast(this.x(Math.max(begin, from)), this.x(Math.min(end, to)), least);
      for (let i = 0; i < runs.length; i += 2) {
        for (let row = runs[i]; row < runs[i] + runs[i + 1]; row += 1) {
          list.push(rect(a, this.top + row * this.step, b - a, thick));
        }
      }
    };
    for (const [who, begin, end, gap, runs] of this.group.ownership) {
      paint(held[who % 10] ||= [], begin, end ?? this.whole[1], runs, 0.5);
      if (gap) paint(gaps, begin - gap, begin, runs, 1);
    }
    this.ends.forEach((end, row) => end < this.whole[1] && paint(gaps, end, this.whole[1], [row, 1], 1));
    const away = [];
    this.group.empty_periods.forEach(({ from_ms: begin, to_ms: end }) =>
      paint(away, begin, end ?? this.whole[1], [0, this.group.partitions.length], 1));
    const ground = this.group.partitions.map((_, row) =>
      rect(this.gutter, this.top + row * this.step, this.width, thick)).join("");
    return [
      s("path", { class: "row", d: ground || rect(this.gutter, this.top, this.width, bottom - this.top) }),
      ...Object.entries(held).map(([color, list]) => s("path", { class: `p${color}`, d: list.join("") })),
      s("path", { class: "gap", d: gaps.join("") }),
      s("path", { class: "away", d: away.join("") }),
    ];
  }

  bands(bottom) {
    const [from, to] = this.view;
    const made = [];
    let labelled = -Infinity;
    this.rebalances.forEach((each, index) => {
      const [begin, end] = [startOf(each), endOf(each)];
      if (begin === null || end < from || begin > to) return;
      const on = index === this.chosen ? " on" : "";
      const [a, b] = atLeast(this.x(begin), this.x(end), 1);
      if (each.started_ms !== null) made.push(s("path", { class: `band${on}`, d: rect(a, this.top - 2, b - a, bottom - this.top) }));
      made.push(s("path", { class: `stem${on}`, d: `M${a.toFixed(1)} 16V${bottom}`, fill: "none" }));
      if (each.generation !== null && each.ending === "stable" && b - labelled > 34 && b < this.gutter + this.width - 8) {
        made.push(s("text", { x: b + 3, y: 30, "aria-hidden": "true" }, String(each.generation)));
        labelled = b;
      }
    });
    return made;
  }

  /* The selected mark is drawn last, on top of the others. */
  marks() {
    const [from, to] = this.view;
    const made = [];
    const order = this.rebalances.map((_, index) => index).filter((index) => index !== this.chosen);
    if (this.chosen >= 0) order.push(this.chosen);
    order.forEach((index) => {
      const each = this.rebalances[index];
      const begin = startOf(each);
      if (begin === null || begin < from || begin > to) return;
      const kind = kindOf(each.trigger);
      made.push(s("path", {
        class: `mark ${kind}${index === this.chosen ? " on" : ""}`, d: SHAPES[kind],
        transform: `translate(${this.x(begin).toFixed(1)} 10)`,
      }));
    });
    return made;
  }

  drawLag(width) {
    const tall = 84;
    const most = Math.max(1, ...this.group.lag.map(([, records]) => records));
    const y = (records) => 8 + (1 - records / most) * (tall - 8);
    const points = this.group.lag.map(([at, records]) => `${this.x(at).toFixed(1)} ${y(records).toFixed(1)}`);
    const [first, last] = [this.group.lag[0][0], this.group.lag.at(-1)[0]];
    const clip = s("clipPath", { id: "lag" }, s("rect", { x: this.gutter, y: 0, width: this.width, height: tall + 1 }));
    this.lag.setAttribute("viewBox", `0 0 ${width} ${tall + 6}`);
    this.lag.setAttribute("height", tall + 6);
    this.lag.replaceChildren(clip,
      s("text", { x: this.gutter - 6, y: 14, "text-anchor": "end" }, compact(most)),
      s("text", { x: this.gutter - 6, y: tall, "text-anchor": "end" }, "lag 0"),
      s("path", { class: "axis", fill: "none", d: `M${this.gutter} ${tall + 0.5}h${this.width}` }),
      s("g", { "clip-path": "url(#lag)" },
        s("path", { class: "lagfill", d: `M${this.x(first).toFixed(1)} ${tall}L${points.join("L")}L${this.x(last).toFixed(1)} ${tall}Z` }),
        s("path", { class: "lagline", d: `M${points.join("L")}` })));
  }

  choose(index, isFocus) {
    this.chosen = index;
    const each = this.rebalances[index];
    if (each && isFocus) {
      const [from, to] = this.view;
      const middle = startOf(each);
      if (middle < from || middle > to) this.zoom(middle - (to - from) / 2, middle + (to - from) / 2);
    }
    this.draw();
  }

  zoom(from, to) {
    const [least, most] = this.whole;
    const span = Math.min(Math.max(to - from, 200), most - least);
    const begin = Math.min(Math.max(from, least), most - span);
    this.view = [begin, begin + span];
    this.draw();
  }

  scale(factor) {
    const [from, to] = this.view;
    const each = this.rebalances[this.chosen];
    const near = each && startOf(each) >= from && startOf(each) <= to;
    const middle = near ? startOf(each) : (from + to) / 2;
    this.zoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  key(event) {
    const last = this.rebalances.length - 1;
    const moves = {
      ArrowRight: () => Math.min(this.chosen + 1, last),
      ArrowLeft: () => (this.chosen < 0 ? last : Math.max(this.chosen - 1, 0)),
      Home: () => 0,
      End: () => last,
    };
    if (moves[event.key] && last >= 0) this.select(moves[event.key](), true);
    else if (event.key === "+" || event.key === "=") this.scale(0.5);
    else if (event.key === "-") this.scale(2);
    else if (event.key === "0") this.zoom(...this.whole);
    else return;
    event.preventDefault();
  }

  place(event) {
    const box = this.picture.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  near(x) {
    let best = -1;
    let distance = 9;
    this.rebalances.forEach((each, index) => {
      const begin = startOf(each);
      if (begin === null) return;
      const [a, b] = [this.x(begin), this.x(endOf(each))];
      const away = x < a ? a - x : x > b ? x - b : 0;
      if (away < distance) [best, distance] = [index, away];
    });
    return best;
  }

  point(event) {
    const [x, y] = this.place(event);
    if (this.pressed !== undefined && Math.abs(x - this.pressed) > 5) {
      const [a, b] = [Math.min(x, this.pressed), Math.max(x, this.pressed)];
      this.shade ||= this.picture.appendChild(s("path", { class: "drag" }));
      this.shade.setAttribute("d", rect(a, this.top - 2, b - a, this.height - this.top - 20));
      tip.hidden = true;
      return;
    }
    if (y < this.top - 4) {
      const index = this.near(x);
      hint(event, "");
      if (index >= 0 && index !== this.chosen) this.select(index, false);
      return;
    }
    hint(event, x < this.gutter ? "" : this.words(Math.floor((y - this.top) / this.step), this.at(x)));
  }

  words(row, ms) {
    const place = this.group.partitions[row];
    if (place === undefined) return "";
    const away = this.group.empty_periods.find(({ from_ms: a, to_ms: b }) => ms >= a && ms < (b ?? Infinity));
    if (away) return `${shortTime(ms)}: the group had no members`;
    const has = (runs) => runs.some((first, i) => i % 2 === 0 && row >= first && row < first + runs[i + 1]);
    const holder = this.group.ownership.find(([, a, b, , runs]) => ms >= a && ms < (b ?? Infinity) && has(runs));
    if (holder) {
      const [who, a, b] = holder;
      const until = b === null ? "to the end" : `to ${shortTime(b)}, ${duration(b - a)}`;
      return `${place}: ${this.group.names[who]}, from ${shortTime(a)} ${until}`;
    }
    const next = this.group.ownership.find(([, a, , gap, runs]) => gap && ms >= a - gap && ms < a && has(runs));
    return next ? `${place}: no owner for ${duration(next[3])}, until ${shortTime(next[1])}` : `${place}: no owner`;
  }

  pointLag(event) {
    const ms = this.at(this.place(event)[0]);
    const point = this.group.lag.findLast(([at]) => at <= ms);
    if (!point) return hint(event, "");
    const seconds = point[2] === null ? "" : `; the largest lag of a partition is ${duration(point[2] * 1000)}`;
    return hint(event, `${shortTime(point[0])}: ${counted(point[1], "record")} behind${seconds}`);
  }

  press(event) {
    const [x] = this.place(event);
    if (event.pointerType === "mouse" && event.button === 0 && x > this.gutter) this.pressed = x;
  }

  release(event) {
    const [x] = this.place(event);
    const from = this.pressed;
    this.pressed = undefined;
    this.shade = undefined;
    if (from !== undefined && Math.abs(x - from) > 5) this.zoom(this.at(Math.min(x, from)), this.at(Math.max(x, from)));
    else if (this.near(x) >= 0) this.select(this.near(x), false);
  }
}

const compact = (n) => new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(n);

/* The duration of each rebalance, one bar each, in their order. */
class Durations {
  constructor(rebalances, select) {
    Object.assign(this, { rebalances, select, chosen: -1 });
    const longest = Math.max(0, ...rebalances.map((each) => each.duration_ms ?? 0));
    this.most = Math.max(longest, 1);
    this.picture = s("svg", { class: "bars", role: "img",
      "aria-label": `Durations of ${counted(rebalances.length, "rebalance")}: at most ${duration(longest)}.` });
    this.element = h("div", { class: "plot" }, this.picture);
    this.picture.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width) return;
    const [gutter, tall] = [64, 120];
    const room = (width - gutter) / this.rebalances.length;
    const thick = Math.min(Math.max(room - (room > 4 ? 1.5 : 0.4), 1), 22);
    const y = (ms) => tall - (ms / this.most) * (tall - 10);
    const parts = this.rebalances.flatMap((each, index) => {
      const x = gutter + index * Math.min(room, 26);
      const said = { pointermove: (event) => hint(event, this.words(each)), click: () => this.select(index, true) };
      const bar = (kind, from, to) => s("rect", {
        class: kind + (index === this.chosen ? " on" : ""), x: x.toFixed(1), width: thick.toFixed(1),
        y: y(to).toFixed(1), height: Math.max(y(from) - y(to), 1).toFixed(1), onpointermove: said.pointermove, onclick: said.click,
      });
      if (each.duration_ms === null) return [bar("row", 0, this.most * 0.03)];
      if (each.join_ms === null || each.sync_ms === null) return [bar("whole", 0, each.duration_ms)];
      return [bar("join", 0, each.join_ms), bar("sync", each.join_ms, each.join_ms + each.sync_ms)];
    });
    this.picture.setAttribute("viewBox", `0 0 ${width} ${tall + 4}`);
    this.picture.setAttribute("height", tall + 4);
    this.picture.replaceChildren(
      s("text", { x: gutter - 8, y: 14, "text-anchor": "end" }, duration(this.most)),
      s("text", { x: gutter - 8, y: tall, "text-anchor": "end" }, "0"),
      s("path", { class: "axis", fill: "none", d: `M${gutter} ${tall + 1}H${width}M${gutter} ${y(this.most)}H${width}` }), ...parts);
  }

  words(each) {
    const when = shortTime(startOf(each));
    if (each.duration_ms === null) return `${when}: duration unknown`;
    if (each.join_ms === null || each.sync_ms === null) return `${when}: ${duration(each.duration_ms)}`;
    return `${when}: ${duration(each.duration_ms)}; join ${duration(each.join_ms)}, sync ${duration(each.sync_ms)}`;
  }

  choose(index) { this.chosen = index; this.draw(); }
}
