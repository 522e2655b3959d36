/* One group in full: what happened, who began it, what it cost, what to change. */

const LONG = 20;
const QUESTIONS = { why: "Why does it rebalance?", who: "Who starts it?", cost: "What did it cost?", change: "What should I change?" };

const unpack = ({ columns, rows }) =>
  rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));

function showStory(article, story, index) {
  const rebalances = unpack(story.rebalances);
  const line = lines.find(({ row }) => row.querySelector("th").firstElementChild.textContent === story.id);
  const parts = [
    h("header", {}, way(index),
      h("h1", {}, h("bdi", {}, story.id), line ? line.row.querySelector(".need").cloneNode(true) : null),
      h("p", { class: "meta" }, `${story.about} ${story.knowledge}`)),
    h("dl", { class: "answers" }, Object.entries(QUESTIONS).map(([name, question]) =>
      h("div", {}, h("dt", {}, question), h("dd", {}, story.answers[name])))),
  ];
  let charts = [];
  const select = (chosen, isFocus) => {
    charts.forEach((chart) => chart.choose(chosen, isFocus));
    article.querySelector("#tale").replaceChildren(...tale(rebalances[chosen], story));
    article.querySelectorAll("tr[data-i]").forEach((row) =>
      row.classList.toggle("on-row", Number(row.dataset.i) === chosen));
  };
  const timeline = new Timeline(story, rebalances, select);
  charts = [timeline];
  parts.push(...findings(story, timeline));
  if (story.places.length || story.lag.length || rebalances.length) parts.push(...timelinePart(story, rebalances, timeline));
  if (rebalances.filter((each) => each.duration_ms !== null).length > 1) {
    const bars = new Durations(rebalances, select);
    charts.push(bars);
    parts.push(...durationsPart(rebalances, bars));
  }
  if (rebalances.length) parts.push(...rebalanceTable(story, rebalances, select, timeline));
  parts.push(...programTable(story, timeline), ...laggardTable(story));
  if (story.left_out.length) parts.push(h("footer", { class: "notes" }, story.left_out.map((each) => h("p", {}, each))));
  article.replaceChildren(...parts);
  const draw = () => charts.forEach((chart) => chart.draw());
  draw();
  onresize = draw;
}

function way(index) {
  const link = (to, words) => (head.stories[to] === undefined ? null
    : h("a", { href: `#group=${encode(head.stories[to])}`, title: head.stories[to] }, words));
  return h("nav", { class: "way", "aria-label": "Groups" }, h("a", { href: "#" }, "← All groups"),
    h("span", {}, link(index - 1, "Previous"), link(index + 1, "Next")));
}

/* A client, and below it where it runs. */
function program(name) {
  const cut = name.lastIndexOf(" at /");
  const client = cut < 0 ? name : name.slice(0, cut);
  const short = client.length <= 26 ? "short" : null;
  return [h("bdi", { class: short }, client), cut < 0 ? null : h("small", {}, name.slice(cut))];
}

/* ---- findings ---- */

function findings(story, timeline) {
  if (!story.findings.length) return [];
  return [h("h2", {}, "Findings"), h("ul", { class: "findings" }, story.findings.map((each) => {
    const show = () => {
      const pad = Math.max((each.to_ms - each.from_ms) * 0.1, 15000);
      timeline.zoom(each.from_ms - pad, each.to_ms + pad);
      timeline.picture.scrollIntoView({ block: "center" });
      timeline.picture.focus({ preventScroll: true });
    };
    const hasTime = each.from_ms !== null && each.to_ms !== null;
    const saved = each.would_have_saved_ms
      ? h("small", {}, `would have saved up to ${duration(each.would_have_saved_ms)} of partition-time`) : null;
    return h("li", {},
      h("h3", {}, h("span", { class: `severity ${each.severity}` }, each.severity), each.finding.replaceAll("-", " "),
        hasTime ? h("small", {}, time(each.from_ms), " to ", time(each.to_ms), " ",
          h("button", { type: "button", class: "plain", onclick: show }, "show on the timeline")) : null),
      h("p", {}, each.what), h("p", { class: "advice" }, each.advice),
      each.setting ? h("p", { class: "setting" }, h("code", {}, each.setting), saved)
        : saved && h("p", { class: "setting" }, saved));
  }))];
}

/* ---- the timeline, and the tale of one rebalance ---- */

function timelinePart(story, rebalances, timeline) {
  const zoom = (label, words, act) => h("button", { type: "button", "aria-label": words, title: words, onclick: act }, label);
  const about = story.places.length ? "Who held which partition. Drag to zoom; point at a mark for its story."
    : "No partition ever had an owner here.";
  const shapes = Object.keys(SHAPES).filter((kind) => rebalances.some((each) => kindOf(each.trigger) === kind));
  const swatch = (name, words) => h("li", { title: words }, s("svg", { viewBox: "0 0 11 11", "aria-hidden": "true" },
    s("rect", { class: name, width: 11, height: 11, rx: 2 })), words);
  const mark = (kind) => h("li", {}, s("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" },
    s("path", { class: kind, d: SHAPES[kind] })), KIND_WORDS[kind]);
  const isLong = ({ from_ms: from, to_ms: to }) => (to ?? timeline.whole[1]) - from > (timeline.whole[1] - timeline.whole[0]) / 400;
  const owners = [...new Set(story.stretches.map(([who]) => who))].sort((a, b) => a - b);
  const shown = owners.slice(0, 14);
  return [h("h2", {}, "Timeline"), h("div", { class: "chart" },
    h("div", { class: "head" }, h("span", {}, about), h("span", { class: "zoom", role: "group", "aria-label": "Zoom" },
      zoom("+", "Zoom in", () => timeline.scale(0.5)), zoom("−", "Zoom out", () => timeline.scale(2)),
      zoom("All", "Show all of the time", () => timeline.zoom(...timeline.whole)))),
    timeline.element,
    h("ul", { class: "legend" }, shapes.map(mark), timeline.hasGaps ? swatch("gap", "without an owner") : null,
      story.absences.some(isLong) ? swatch("away", "the group had no members") : null,
      shown.map((who) => swatch(`p${who % 10}`, story.names[who])),
      owners.length > shown.length ? h("li", {}, `and ${owners.length - shown.length} more`) : null),
    rebalances.length ? h("p", { class: "tale", id: "tale", "aria-live": "polite" },
      h("span", { class: "q" }, "Point at a mark above, or focus the timeline and press ← or →, to read what happened in a rebalance."))
      : h("p", { class: "tale", id: "tale" }, "No rebalance in this time."))];
}

function tale(each, story) {
  const name = (who) => h("b", {}, h("bdi", {}, story.names[who]));
  const some = (numbers, total) => numbers.flatMap((who, i) => [i ? ", " : "", name(who)])
    .concat(total > numbers.length ? ` and ${total - numbers.length} more` : "");
  const said = [time(startOf(each)), ": "];
  const generations = each.generation_before === null ? `generation ${each.generation}`
    : `generation ${each.generation_before} → ${each.generation ?? "?"}`;
  said.push(`the rebalance of ${generations} began because ${head.triggers[each.trigger] || each.trigger || "of something unknown"}`);
  if (each.culprit !== null) said.push(": ", name(each.culprit));
  said.push(each.is_exact ? ". " : ` (${percent(each.confidence ?? 0)} sure). `);
  if (each.client_reason) said.push("Its client said: “", h("i", {}, each.client_reason), "”. ");
  said.push(...took(each, name));
  if (each.ending && each.ending !== "stable") said.push(`Ending: ${head.endings[each.ending] || each.ending}. `);
  if (each.joined_total) said.push("Came: ", ...some(each.joined, each.joined_total), ". ");
  if (each.departed_total) said.push("Went: ", ...some(each.departed, each.departed_total), ". ");
  const costs = [];
  if (each.moved) costs.push(`${counted(each.moved, "partition")} moved${each.moved_needlessly ? `, ${number(each.moved_needlessly)} of them needlessly` : ""}`);
  if (each.ownerless_ms) costs.push(`${duration(each.ownerless_ms)} of partition-time without an owner${each.is_exact ? "" : ", by estimate"}`);
  if (each.replayed) costs.push(`${counted(each.replayed, "record")} read again`);
  if (costs.length) said.push(`Cost: ${costs.join("; ")}.`);
  return said;
}

function took(each, name) {
  if (each.duration_ms === null) return ["How long it took is not known. "];
  const said = [`It took ${each.is_exact ? "" : "about "}${duration(each.duration_ms)}`];
  if (each.join_ms !== null && each.sync_ms !== null) {
    said.push(`: ${duration(each.join_ms)} until everybody had joined`);
    if (each.slowest !== null && each.slowest_join_ms > 0) said.push(" (", name(each.slowest), " last)");
    said.push(`, ${duration(each.sync_ms)} until the assignment was kept`);
  }
  said.push(". ");
  return said;
}

function durationsPart(rebalances, bars) {
  const hasPhases = rebalances.some((each) => each.join_ms !== null && each.sync_ms !== null);
  const swatch = (name, words) => h("li", {}, s("svg", { viewBox: "0 0 11 11", "aria-hidden": "true" },
    s("rect", { class: name, width: 11, height: 11, rx: 2 })), words);
  return [h("h2", {}, "How long each rebalance took"), h("div", { class: "chart" }, bars.element,
    h("ul", { class: "legend" }, hasPhases ? [swatch("join", "until everybody had joined"), swatch("sync", "until the assignment was kept")] : null,
      rebalances.some((each) => each.duration_ms !== null && (each.join_ms === null || each.sync_ms === null))
        ? swatch("whole", hasPhases ? "phases not known" : "in all; only events tell its phases") : null))];
}

/* ---- tables ---- */

function table(heads, rows, caption) {
  const made = h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads.map(([words, kind]) =>
    h("th", { scope: "col", class: kind, "aria-sort": kind === "grow" ? null : "none" },
      kind === "grow" ? words : h("button", { type: "button" }, words))))), h("tbody", {}, rows));
  sortable(made);
  const parts = [h("div", { class: "frame" }, made)];
  if (rows.length > LONG) {
    rows.slice(LONG).forEach((row) => { row.hidden = true; });
    const more = h("p", { class: "more" }, h("button", { type: "button", class: "plain", onclick: () => {
      rows.forEach((row) => { row.hidden = false; });
      more.remove();
    } }, `Show all ${number(rows.length)}`));
    parts.push(more);
    made.tHead.addEventListener("click", () => more.isConnected && [...made.tBodies[0].rows].forEach((row, i) => { row.hidden = i >= LONG; }));
  }
  return parts;
}

const cell = (value, words, kind = "n") => h("td", { class: kind, "data-v": value ?? -1 }, words ?? "");
const dash = (n) => (n === null ? "" : number(n));

function rebalanceTable(story, rebalances, select, timeline) {
  const heads = [["Began", ""], ["Because", ""], ["Started by", ""], ["Took", "n"], ["Members", "n"], ["Moved", "n"],
    ["Needlessly", "n"], ["Without an owner", "n"], ["Read again", "n"], ["Ending", ""]];
  const rows = rebalances.map((each, index) => {
    const show = () => { select(index, true); timeline.element.scrollIntoView({ block: "center" }); };
    const doubt = each.is_exact ? null : h("small", {}, ` ${percent(each.confidence ?? 0)} sure`);
    return h("tr", { "data-i": index },
      h("td", { class: "num", "data-v": startOf(each) ?? -1 }, h("button", { type: "button", class: "plain", onclick: show, title: "Show on the timeline" }, startOf(each) === null ? "?" : time(startOf(each)))),
      h("td", {}, (each.trigger || "unknown").replaceAll("-", " "), doubt),
      h("td", { class: "who" }, each.culprit === null ? "" : program(story.names[each.culprit])),
      cell(each.duration_ms, each.duration_ms === null ? "" : duration(each.duration_ms)),
      cell(each.members_after, `${each.members_before ?? "?"} → ${each.members_after ?? "?"}`),
      cell(each.moved, dash(each.moved)), cell(each.moved_needlessly, dash(each.moved_needlessly)),
      cell(each.ownerless_ms, each.ownerless_ms ? duration(each.ownerless_ms) : ""), cell(each.replayed, dash(each.replayed)),
      h("td", {}, head.endings[each.ending] || each.ending || "going on"));
  }).reverse();
  return [h("h2", {}, "Rebalances, the latest first"), ...table(heads, rows, "Rebalances")];
}

function programTable(story, timeline) {
  if (!story.programs.length) return [];
  const [from, to] = timeline.whole;
  const x = (ms) => ((ms - from) / (to - from)) * 300;
  const rows = story.programs.map((each) => {
    const lives = unpack(each.lives);
    const paths = lives.map((life) => {
      const [a, b] = atLeast(x(Math.max(life.from_ms, from)), x(life.to_ms ?? to), 1.2);
      return rect(a, 1, Math.max(b - a - 0.8, 0.8), 12);
    });
    const last = lives.at(-1);
    const ending = last.to_ms === null ? "is a member" : head.departures[last.ending] || last.ending || "gone";
    const words = lives.slice(-6).map((life) => `${moment(life.from_ms)} to ${life.to_ms === null ? "now" : `${moment(life.to_ms)} (${head.departures[life.ending] || life.ending || "gone"})`}`).join("; ");
    return h("tr", {}, h("th", { scope: "row", class: "who" }, program(story.names[each.name])),
      h("td", { class: "grow" }, s("svg", { class: "lives", viewBox: "0 0 300 14", preserveAspectRatio: "none", role: "img", "aria-label": words },
        s("rect", { class: "row", width: 300, height: 14 }), s("path", { class: `p${each.name % 10}`, d: paths.join("") }), s("title", {}, words))),
      cell(lives.length, number(lives.length)), cell(each.began, each.began ? number(each.began) : ""),
      h("td", {}, ending, last.to_ms === null ? null : h("small", {}, " ", time(last.to_ms))));
  });
  return [h("h2", {}, "Members, their comings and goings"),
    ...table([["Program", ""], ["When it was a member", "grow"], ["Memberships", "n"], ["Rebalances it started", "n"], ["Last seen", ""]], rows, "Members")];
}

function laggardTable(story) {
  const rows = unpack(story.laggards).map((each) => h("tr", {},
    h("th", { scope: "row" }, h("bdi", {}, `${each.topic}-${each.partition}`)),
    h("td", {}, h("span", { class: `lag-${each.status}` }, each.status)),
    cell(each.lag_records, dash(each.lag_records)), h("td", {}, each.reason),
    h("td", { class: "num", "data-v": each.since_ms ?? -1 }, each.since_ms === null ? "" : time(each.since_ms)),
    h("td", { class: "who" }, each.owner === null ? "nobody" : program(each.owner))));
  if (!rows.length) return [];
  return [h("h2", {}, "Partitions that do not keep up"),
    ...table([["Partition", ""], ["Status", ""], ["Records behind", "n"], ["Why", ""], ["Since", ""], ["Held by", ""]], rows, "Lag")];
}
