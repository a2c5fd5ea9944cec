// A search box that finds nodes by label, and members of grouped nodes by number.
class Search {
  constructor(input, list, model, chosen) {
    Object.assign(this, { input, list, model, chosen });
    this.found = []; this.active = -1;
    this.groups = model.about.layers.map((layer) => layer.labels.map((label) => /^\D*(\d+)-(\d+)$/.exec(label)));
    input.placeholder = model.about.layers.map((layer) => layer.name).join(", ");
    input.addEventListener("input", () => this.suggest());
    input.addEventListener("keydown", (event) => this.press(event));
    input.addEventListener("blur", () => this.close());
    // `pointerdown` occurs before the box loses the focus
    list.addEventListener("pointerdown", (event) => {
      const item = event.target.closest("li");
      event.preventDefault();
      if (item) this.choose(Number(item.dataset.place));
    });
  }

  // Matching nodes, best first: an equal label, a group that contains the number, a label that begins with the text, a
  // label that contains it.
  matches(text) {
    const query = text.trim().toLowerCase(), found = [];
    if (!query) return found;
    this.model.about.layers.forEach((layer, number) => {
      const own = query.startsWith(layer.name.toLowerCase()) ? query.slice(layer.name.length).trim() : query;
      const wanted = /^\d+$/.test(own) ? Number(own) : NaN;
      if (!own) return;
      layer.labels.forEach((label, node) => {
        const lower = label.toLowerCase(), group = this.groups[number][node];
        let order = -1;
        if (lower === own || lower === query) order = 0;
        else if (layer.groupSize > 1 && group && wanted >= Number(group[1]) && wanted <= Number(group[2])) order = 1;
        else if (lower.startsWith(own)) order = 2;
        else if (lower.includes(own) || lower.includes(query)) order = 3;
        if (order >= 0) found.push({ order, layer: number, node });
      });
    });
    return found.sort((one, other) => one.order - other.order || one.layer - other.layer || one.node - other.node).slice(0, 12);
  }

  suggest() {
    this.found = this.matches(this.input.value);
    this.active = this.found.length ? 0 : -1;
    this.list.replaceChildren(...this.found.map(({ layer, node }, place) =>
      element("li", { id: `suggestion-${place}`, role: "option", "data-place": place, text: this.model.nodeText(layer, node) })));
    if (!this.found.length && this.input.value.trim()) this.list.append(element("li", { role: "option", "aria-disabled": "true", text: "nothing found" }));
    this.list.hidden = !this.list.children.length;
    this.show();
  }

  show() {
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.found.forEach((_, place) => this.list.children[place].setAttribute("aria-selected", String(place === this.active)));
    if (this.active >= 0) {
      this.input.setAttribute("aria-activedescendant", `suggestion-${this.active}`);
      this.list.children[this.active].scrollIntoView({ block: "nearest" });
    } else this.input.removeAttribute("aria-activedescendant");
  }

  press(event) {
    if (event.key === "Escape" && !this.list.hidden) { event.stopPropagation(); this.close(); return; }
    if (event.key === "Enter") { event.preventDefault(); if (this.list.hidden) this.suggest(); this.choose(this.active); return; }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    if (this.list.hidden) this.suggest();
    else if (this.found.length) { this.active = (this.active + step + this.found.length) % this.found.length; this.show(); }
  }

  choose(place) {
    const one = this.found[place];
    if (!one) return;
    this.input.value = this.model.nodeText(one.layer, one.node);
    this.close();
    this.chosen(one.layer, one.node);
  }

  close() {
    this.list.hidden = true;
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
