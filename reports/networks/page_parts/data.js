// Decodes the page's numbers from base64 and deflate; see page_data.py.
async function inflated(name) {
  const element = document.getElementById(`part-${name}`);
  if (!element) return null;
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  element.textContent = "";
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Reader(new Uint8Array(await new Response(stream).arrayBuffer()));
}

class Reader {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }

  reals(count) {
    const found = new Float32Array(this.bytes.slice(this.at, this.at + 4 * count).buffer);
    this.at += 4 * count;
    return found;
  }

  // Decodes LEB128 into a typed array.
  whole(into) {
    const bytes = this.bytes;
    let at = this.at;
    for (let i = 0; i < into.length; i++) {
      let byte = bytes[at++], value = byte & 127, size = 128;
      while (byte >= 128) { byte = bytes[at++]; value += (byte & 127) * size; size *= 128; }
      into[i] = value;
    }
    this.at = at;
    return into;
  }

  // Decodes signed differences, and returns their cumulative sums.
  summed(count) {
    const found = this.whole(new Float64Array(count));
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const half = Math.floor(found[i] / 2);
      sum += found[i] % 2 ? -half - 1 : half;
      found[i] = sum;
    }
    return Int32Array.from(found);
  }

  // Decodes rounded values from their codes; `bits` as in `codes` of page_data.py.
  codes(count, bits) {
    const found = this.whole(new Float64Array(count));
    if (!bits) return found;
    const most = 2 ** bits, half = most / 2;
    for (let i = 0; i < count; i++) {
      if (found[i] < most) continue;
      const code = found[i] - most;
      found[i] = (half + (code % half)) * 2 ** (1 + Math.floor(code / half));
    }
    return found;
  }

  // Decodes the start of each window's entries, and the ascending numbers in each window.
  byWindow(windowCount) {
    const lengths = this.whole(new Uint32Array(windowCount));
    const begins = new Uint32Array(windowCount + 1);
    for (let w = 0; w < windowCount; w++) begins[w + 1] = begins[w] + lengths[w];
    const numbers = this.whole(new Uint32Array(begins[windowCount]));
    for (let w = 0; w < windowCount; w++) risen(numbers, begins[w], begins[w + 1]);
    return { begins, numbers };
  }
}

function risen(gaps, from, until) {
  let last = -1;
  for (let i = from; i < until; i++) { last += gaps[i] + 1; gaps[i] = last; }
  return gaps;
}

async function loadEdges(about) {
  const reader = await inflated("edges");
  const edgeCount = about.hops.reduce((sum, hop) => sum + hop.edgeCount, 0);
  const rings = about.layers.map((layer) => {
    const count = layer.labels.length;
    const begins = reader.reals(count), ends = reader.reals(count);
    return ringOf(layer, begins, ends);
  });
  const sources = reader.summed(edgeCount), targets = reader.summed(edgeCount);
  const hops = new Uint8Array(edgeCount), firsts = [0];
  about.hops.forEach((hop, number) => {
    hops.fill(number, firsts[number], firsts[number] + hop.edgeCount);
    firsts.push(firsts[number] + hop.edgeCount);
  });
  return { rings, edgeCount, sources, targets, hops, firsts };
}

function ringOf(layer, begins, ends) {
  const order = Array.from(begins.keys()).sort((one, other) => begins[one] - begins[other]);
  const places = new Int32Array(order.length);
  order.forEach((node, place) => { places[node] = place; });
  const middles = begins.map((begin, node) => (begin + ends[node]) / 2);
  return { inner: layer.inner, outer: layer.outer, begins, ends, middles, order, places };
}

async function loadTotals(about, edgeCount) {
  const reader = await inflated("totals");
  const column = () => reader.whole(new Float64Array(edgeCount));
  const whole = { transfers: column(), read: column(), written: column(), longest: null };
  whole.longest = reader.codes(edgeCount, about.detail.wholeLongestBits).map((nanoseconds) => nanoseconds / 1e9);
  const ofWindows = await inflated("windows-totals");
  if (!ofWindows) return { whole, windows: null };
  const windows = ofWindows.byWindow(about.windowEdges.length - 1);
  const count = windows.numbers.length, bits = about.detail.totalBits;
  windows.transfers = ofWindows.codes(count, bits);
  windows.read = ofWindows.codes(count, bits);
  windows.written = ofWindows.codes(count, bits);
  windows.longest = ofWindows.codes(count, about.detail.longestBits).map((nanoseconds) => nanoseconds / 1e9);
  return { whole, windows };
}

async function loadTimeline(about) {
  const reader = await inflated("timeline");
  const count = about.timeline.flat().reduce((sum, one) => sum + one, 0);
  const all = { mean: reader.reals(count), least: reader.reals(count), most: reader.reals(count) };
  const steps = reader.whole(new Uint32Array(count));
  let at = 0;
  return about.timeline.map((hops) => hops.map((length) => {
    const part = { steps: steps.subarray(at, at + length) };
    for (const name of ["mean", "least", "most"]) part[name] = all[name].subarray(at, at + length);
    at += length;
    return part;
  }));
}

async function loadMetric(about, number) {
  const said = about.metrics[number];
  const whole = await inflated(`whole-${said.name}`);
  const cells = risen(whole.whole(new Uint32Array(said.cellCount)), 0, said.cellCount);
  const counts = whole.codes(said.cellCount, about.detail.wholeBits);
  const ofWindows = await inflated(`windows-${said.name}`);
  let windows = null;
  if (ofWindows) {
    windows = ofWindows.byWindow(about.windowEdges.length - 1);
    windows.counts = ofWindows.codes(windows.numbers.length, about.detail.countBits);
  }
  return { number, name: said.name, slots: said.lowest.length, special: said.hasNegative + said.hasZero, said, cells, counts, windows };
}
