// Searches applications, users and jobs; the key `/` starts a search on any page.
let sought = null;

function readied() {
  sought ??= Promise.all([loaded("search"), loaded("jobs").catch(() => null), script("assets/minisearch.js")]).then(([names, jobs]) => {
    const index = new MiniSearch({
      fields: ["name"], storeFields: ["name", "kind"],
      tokenize: (text) => text.split(/[\s/_.,:;\-]+/).filter((word) => word),
      searchOptions: { prefix: true, fuzzy: (word) => (word.length > 4 ? 0.2 : 0), combineWith: "AND" },
    });
    index.addAll([
      ...names.applications.application_id.map((name, id) => ({ id: `a${id}`, name, kind: "application" })),
      ...names.users.user.map((name, id) => ({ id: `u${id}`, name, kind: "user" })),
    ]);
    return { index, jobs };
  });
  return sought;
}

// The jobs with ids that begin with the text, by binary search in the sorted ids.
function jobsThatBegin(jobs, text, most) {
  const ids = jobs.job_id;
  let low = 0, high = ids.length;
  while (low < high) { const middle = (low + high) >> 1; if (ids[middle] < text) low = middle + 1; else high = middle; }
  const found = [];
  for (let place = low; place < ids.length && found.length < most && ids[place].startsWith(text); place++) found.push(place);
  return found;
}

const runHref = (cluster, job, started) => `run.html#${hashOf([cluster, job, String(started)])}`;

async function answers(text) {
  const { index, jobs } = await readied();
  const named = index.search(text).slice(0, 12).map((hit) => ({
    kind: hit.kind, name: hit.name,
    href: hit.kind === "user" ? `applications.html#user=${encodeURIComponent(hit.name)}` : `application.html#${applicationHash(hit.name)}`,
  }));
  const runs = jobs ? jobsThatBegin(jobs, text.trim(), 6).map((place) => ({
    kind: "job", name: `${jobs.job_id[place]} (${instantText(jobs.started_at[place])})`,
    href: runHref(jobs.clusters[jobs.cluster[place]], jobs.job_id[place], jobs.started_at[place]),
  })) : [];
  return [...runs, ...named].slice(0, 14);
}

function beginSearch() {
  const input = byId("search"), list = byId("found");
  let found = [], chosen = 0, asked = 0;
  const close = () => { list.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const mark = () => [...list.children].forEach((item, place) => {
    item.setAttribute("aria-selected", String(place === chosen));
    if (place === chosen) { item.scrollIntoView({ block: "nearest" }); input.setAttribute("aria-activedescendant", item.id); }
  });
  const go = (place) => { if (found[place]) { close(); location.href = found[place].href; } };
  const ask = async () => {
    const text = input.value.trim(), number = ++asked, began = performance.now();
    if (!text) return close();
    const now = await answers(text).catch(() => []);
    if (number !== asked) return undefined;
    found = now; chosen = 0;
    list.replaceChildren(...(now.length ? now.map((one, place) => make("li", {
      role: "option", id: `found-${place}`, onmousedown: (event) => { event.preventDefault(); go(place); },
    }, make("small", {}, one.kind), " ", make("bdi", {}, nameText(one.name, 120)))) : [make("li", { class: "none" }, "No matches.")]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    list.dataset.of = text;
    list.dataset.took = String(performance.now() - began);
    return mark();
  };
  input.addEventListener("focus", () => readied().then(() => { input.dataset.ready = "yes"; }));
  input.addEventListener("input", ask);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = Math.max(0, Math.min(found.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1)));
      mark();
    } else if (event.key === "Enter") go(chosen);
    else if (event.key === "Escape") { close(); input.value = ""; input.blur(); }
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(input|select|textarea)$/i.test(document.activeElement?.tagName || "");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) { event.preventDefault(); input.focus(); input.select(); }
  });
}
