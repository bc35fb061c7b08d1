// Which charts are drawn when: only what is in sight, one chart per frame, so that the page stays quick.

export class Drawing {
  constructor() {
    this.charts = new Map(); // element → {chart, seen, stale}
    this.running = false;
    this.sight = new IntersectionObserver((entries) => this.#look(entries), { rootMargin: "120px" });
    window.addEventListener("beforeprint", () => this.#rest());
  }

  /** A chart (with `draw(Plotly)`) that is drawn when its element is in sight. */
  add(element, chart) {
    this.charts.set(element, { chart, seen: false, stale: true });
    this.sight.observe(element);
  }

  remove(element) {
    this.sight.unobserve(element);
    this.charts.delete(element);
  }

  /** plotly is there. */
  begin(Plotly) {
    this.Plotly = Plotly;
    this.all();
  }

  /** Everything is old. */
  all() {
    for (const entry of this.charts.values()) entry.stale = true;
    this.#run();
  }

  /** On paper everything is in sight. */
  #rest() {
    if (!this.Plotly) return;
    for (const entry of this.charts.values()) {
      if (entry.stale) entry.chart.draw(this.Plotly);
      entry.stale = false;
    }
  }

  #look(entries) {
    for (const { target, isIntersecting } of entries) {
      const entry = this.charts.get(target);
      if (entry) entry.seen = isIntersecting;
    }
    this.#run();
  }

  #run() {
    if (this.running || !this.Plotly) return;
    const next = [...this.charts.values()].find((entry) => entry.seen && entry.stale);
    if (!next) return;
    this.running = true;
    requestAnimationFrame(() => {
      this.running = false;
      next.stale = false;
      next.chart.draw(this.Plotly);
      this.#run();
    });
  }
}
