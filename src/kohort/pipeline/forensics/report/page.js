"use strict";
/* The page: light and dark theme, the list of groups, and which group is open. Values from the
   tables are only inserted as text. */

const head = JSON.parse(document.getElementById("head").textContent);
const byId = (id) => document.getElementById(id);

/* ---- elements ---- */

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/* ---- numbers and times ---- */

const number = (n) => n.toLocaleString("en-US");
const counted = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
const percent = (share) => `${Math.round(share * 100)} %`;

function duration(ms) {
  const two = (n, per, large, small) =>
    `${number(Math.floor(n / per))} ${large}` + (n % per ? ` ${n % per} ${small}` : "");
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1).replace(/\.0$/, "")} s`;
  if (ms < 3599500) return two(Math.round(ms / 1000), 60, "min", "s");
  if (ms < 86370000) return two(Math.round(ms / 60000), 60, "h", "min");
  return two(Math.round(ms / 3600000), 24, "d", "h");
}

/* Times of a group's details are relative to the start of the report. */
const isOneDay = new Date(head.since).toISOString().slice(0, 10)
  === new Date(head.until).toISOString().slice(0, 10);
const iso = (ms) => new Date(head.since + ms).toISOString();
const clock = (ms) => iso(ms).slice(11, 19);
const day = (ms) => iso(ms).slice(5, 10);
const shortTime = (ms) => (isOneDay ? clock(ms) : `${day(ms)} ${clock(ms)}`);
const local = (ms) => new Date(head.since + ms).toLocaleString(undefined, { timeZoneName: "short" });
const time = (ms) => h("time", { datetime: iso(ms), title: `UTC; local time: ${local(ms)}` }, shortTime(ms));

/* ---- light and dark ---- */

/* Until the user chooses a theme, the style sheet uses the system's. */
const root = document.documentElement;
try { root.dataset.theme = localStorage.getItem("kohort-theme") || ""; } catch { /* a page opened from a file may have no storage */ }
byId("theme").addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.setItem("kohort-theme", root.dataset.theme); } catch { /* the choice lasts until the page is closed */ }
});

/* ---- tooltip ---- */

const tip = byId("tip");
function hint(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  const below = event.clientY + 18;
  tip.style.top = `${below + box.height > innerHeight ? event.clientY - box.height - 10 : below}px`;
}

/* ---- sortable tables ---- */

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const original = [...body.rows];
  const sortValue = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.v);
  };
  heads.forEach((cell, column) => {
    const button = cell.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const isNumber = original.some((row) => row.cells[column].dataset.v !== undefined);
      const orders = isNumber ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
      const order = orders[(orders.indexOf(cell.getAttribute("aria-sort")) + 1) % 3];
      heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
      cell.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...original];
      if (order !== "none") {
        rows.sort((one, other) => {
          const [a, b] = [sortValue(one, column), sortValue(other, column)];
          if (a === b) return 0;
          if (a === "" || b === "") return a === "" ? 1 : -1;
          return a < b ? -sign : sign;
        });
      }
      body.append(...rows);
    });
  });
}

/* ---- the list ---- */

const lines = [...byId("groups").tBodies[0].rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
let only = "";

function filterList() {
  const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const { row, text } of lines) {
    row.hidden = !((!only || row.dataset.status === only) && words.every((word) => text.includes(word)));
    shown += !row.hidden;
  }
  byId("groups").parentElement.hidden = !shown;
  byId("shown").textContent = shown === lines.length ? "" : `${number(shown)} of ${number(lines.length)}`;
}
byId("find").addEventListener("input", filterList);
document.querySelectorAll("[data-only]").forEach((button) => button.addEventListener("click", () => {
  only = button.dataset.only;
  document.querySelectorAll("[data-only]").forEach((each) => each.setAttribute("aria-pressed", each === button));
  filterList();
}));
sortable(byId("groups"));

/* ---- which group is open ---- */

let open = null;
let scrolled = 0;

function groupInUrl() {
  if (!location.hash.startsWith("#group=")) return null;
  try { return decodeURIComponent(location.hash.slice(7)); } catch { return null; }
}

function route() {
  if (location.hash === "#main") return;
  const name = groupInUrl();
  const index = name === null ? -1 : head.details.indexOf(name);
  if (open === null && index >= 0) scrolled = scrollY;
  const wasOpen = open;
  open = index >= 0 ? name : null;
  byId("list").hidden = open !== null;
  byId("group").hidden = open === null;
  document.title = open === null ? "Kohort forensics: why consumer groups rebalance" : `${open}: why it rebalances`;
  tip.hidden = true;
  if (open === null) {
    byId("group").replaceChildren();
    scrollTo(0, scrolled);
    const link = wasOpen && lines.map(({ row }) => row.querySelector("a"))
      .find((each) => each && each.getAttribute("href") === `#group=${encode(wasOpen)}`);
    if (link) link.focus({ preventScroll: true });
    if (name !== null) { byId("find").value = name; filterList(); } // a group without details on this page
  } else {
    showGroup(byId("group"), JSON.parse(byId(`details-${index}`).textContent), index);
    scrollTo(0, 0);
  }
}

/* As Python's urllib.parse.quote, which made the links. */
const encode = (name) => encodeURIComponent(name)
  .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
const go = (index) => {
  if (head.details[index] !== undefined) location.hash = `group=${encode(head.details[index])}`;
};

addEventListener("hashchange", route);
addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (isTyping) { byId("find").value = ""; filterList(); event.target.blur(); }
    else if (open !== null) location.hash = "";
  } else if (isTyping) {
    if (event.key === "Enter") {
      const first = [...byId("groups").tBodies[0].rows].find((row) => !row.hidden && row.querySelector("a"));
      if (first) location.hash = first.querySelector("a").getAttribute("href");
    }
  } else if (event.key === "/") {
    event.preventDefault();
    if (open !== null) location.hash = "";
    setTimeout(() => byId("find").focus());
  } else if (event.key === "[" || event.key === "]") {
    const at = open === null ? -1 : head.details.indexOf(open);
    go(event.key === "]" ? at + 1 : at - 1);
  }
});
document.querySelectorAll(".span time").forEach((each) => {
  each.title = `Local time: ${local(0)} to ${local(head.until - head.since)}`;
});
addEventListener("DOMContentLoaded", route);
