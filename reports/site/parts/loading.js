// Loads data as scripts next to the page, since browsers let a page opened from a file load nothing else.
const waiting = new Map();

globalThis.iosigData = (name, body) => {
  const waits = waiting.get(name);
  if (waits) waits.receive(body);
};

async function unpacked(body) {
  const bytes = Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function loaded(name) {
  if (waiting.has(name)) return waiting.get(name).promise;
  const waits = {};
  waits.promise = new Promise((resolve, reject) => {
    waits.receive = (body) => unpacked(body).then(resolve, reject);
    script(`data/${name}.js`).catch(() => reject(new Error("missing")));
  });
  waiting.set(name, waits);
  return waits.promise;
}

const scripts = new Map();

function script(path) {
  if (!scripts.has(path)) {
    scripts.set(path, new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = path;
      element.addEventListener("load", resolve);
      element.addEventListener("error", () => reject(new Error(path)));
      document.head.append(element);
    }));
  }
  return scripts.get(path);
}

// Converts a frame from columns to rows.
function rowsOf(columns) {
  const names = Object.keys(columns);
  if (!names.length) return [];
  return columns[names[0]].map((_, place) => Object.fromEntries(names.map((name) => [name, columns[name][place]])));
}
