(() => {
  const root = document.documentElement;
  const plots = [...document.querySelectorAll(".plot")].map((holder) => ({ holder, text: holder.nextElementSibling.textContent }));
  // by name: among plotly's usual buttons is one that sends the plot away
  const settings = { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "resetScale2d"]] };
  const night = { "#222222": "#e6e6e6", "#444444": "#c9c9c9", "#e3e3e3": "#34373c", "#9a9a9a": "#6c7076", "#6b6b6b": "#a8a8a8", "white": "rgba(0,0,0,0)", "#ffffff": "#2a2d31" };
  const boxes = [...document.querySelectorAll(".bar input")];
  let dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const shown = (methods) => !methods || boxes.some((box) => box.checked && methods.includes(box.value));

  function draw({ holder, text }, night_time, width) {
    const themed = night_time ? text.replace(/#(?:222222|444444|e3e3e3|9a9a9a|6b6b6b|ffffff)|(?<=")white(?=")/g, (colour) => night[colour]) : text;
    const plot = JSON.parse(themed);
    plot.data.forEach((trace) => { if (!shown(trace.meta)) trace.visible = false; });
    holder.parentElement.hidden = !shown(plot.layout.meta);
    if (holder.parentElement.hidden) return Promise.resolve();
    if (width) plot.layout.width = width(holder);
    return Plotly.react(holder, plot.data, plot.layout, settings);
  }
  function drawAll(night_time, width) { return Promise.all(plots.map((plot) => draw(plot, night_time, width))); }
  function theme(is_dark) {
    dark = is_dark;
    root.dataset.theme = dark ? "dark" : "light";
    return drawAll(dark);
  }
  boxes.forEach((box) => box.addEventListener("change", () => drawAll(dark)));
  document.querySelector(".bar button").addEventListener("click", () => theme(!dark));
  theme(dark).then(() => { document.body.dataset.plots = String(plots.length); });

  // a click sorts all rows by a column, a second the other way round, a third as it was
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim().replace("−", "-").replace(/^< /, "").replace(/(?<=\d),(?=\d{3})/g, "");
    return /^[-+]?[\d.]/.test(text) ? parseFloat(text) : text === "–" || text === "undefined" ? null : text;
  };
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  document.querySelectorAll("table").forEach((table) => {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows].map((row) => ({ row, body })));
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.tabIndex = 0;
      head.title = "sort";
      const sort = () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") ?? "none"];
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (next === "none") return rows.forEach(({ row, body }) => body.append(row));
        head.setAttribute("aria-sort", next);
        const turned = next === "ascending" ? 1 : -1;
        const keyed = rows.map(({ row }) => ({ row, key: value(row, column) }));
        keyed.sort((a, b) => (a.key === null || b.key === null ? (a.key === null) - (b.key === null) : turned * order(a.key, b.key)));
        keyed.forEach(({ row }) => table.tBodies[0].append(row));
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    });
  });

  // a browser lays paper out too late for plots to follow: the page takes a sheet's width, by day, beforehand
  window.addEventListener("beforeprint", () => {
    document.body.classList.add("paper");
    root.dataset.theme = "light";
    drawAll(false, (holder) => holder.clientWidth);
  });
  window.addEventListener("afterprint", () => {
    document.body.classList.remove("paper");
    theme(dark);
  });
})();
