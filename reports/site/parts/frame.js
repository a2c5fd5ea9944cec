// Elements of every page: the theme, the release, messages. Elements are made from text only, never from HTML.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && isKnown(value)) element.setAttribute(name, value);
  }
  element.append(...children.filter(isKnown));
  return element;
}

const byId = (id) => document.getElementById(id);
const drawnIn = (name) => byId(name).querySelector(".drawn");

function say(text) {
  const message = byId("message");
  message.textContent = text;
  message.hidden = false;
}

function nothing(into, text) {
  into.replaceChildren(make("p", { class: "nothing" }, text));
}

// Fills the command under a figure, which prints the same numbers.
function tellQuery(name, values) {
  const figure = byId(name);
  figure.querySelector(".query code").textContent = commandLine(figure.dataset.query, values);
}

function remembered(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch { /* a browser may keep nothing */ }
  return value ?? null;
}

const themeChanged = new Set();
const systemTheme = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  const theme = remembered("iosig-theme") || (systemTheme.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Use the ${theme === "dark" ? "light" : "dark"} theme`);
  for (const tell of themeChanged) tell();
}

function beginTheme() {
  applyTheme();
  systemTheme.addEventListener("change", applyTheme);
  byId("theme").addEventListener("click", () => {
    remembered("iosig-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    applyTheme();
  });
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Offers the other releases of this report, if their folders are next to this one.
function beginReleases() {
  const own = document.documentElement.dataset.release, select = byId("release");
  globalThis.iosigReleases = (releases) => {
    select.replaceChildren(...releases.map(([id], place) =>
      make("option", { value: id, selected: id === own }, `${id}${place ? "" : " (latest)"}`)));
  };
  select.addEventListener("change", () => {
    location.href = `../${encodeURIComponent(select.value)}/${location.pathname.split("/").pop()}${location.hash}`;
  });
  script("../releases.js").catch(() => { select.disabled = true; });
}

function facts(pairs) {
  return make("dl", { class: "facts" }, ...pairs.filter((pair) => pair).flatMap(([name, value]) => [
    make("dt", {}, name), make("dd", {}, value ?? UNKNOWN)]));
}

// A small table that needs no library; cells are text or elements.
function plainTable(heads, rows) {
  const head = make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell ?? UNKNOWN))));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}
