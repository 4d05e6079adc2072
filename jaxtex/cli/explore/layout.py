"""The HTML and the styles of the page. Nothing in it comes from another server."""

# pyright: strict

NAME = "jaxtex explore"

TEMPLATE = """
{% extends base %}
{% block postamble %}
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  :root { color-scheme: light; }
  body { background: #f5f6f8; color: #1c2330; font: 15px/1.45 system-ui, sans-serif; }
  main { box-sizing: border-box; max-width: 1560px; margin: 0 auto; padding: 12px 12px 32px; }
  header { margin: 0 0 12px; }
  h1 { font-size: 20px; line-height: 1.3; margin: 0; }
  h2 { font-size: 15px; margin: 0 0 6px; }
  section { background: #fff; border: 1px solid #d9dde4; border-radius: 6px; padding: 10px 8px; min-width: 0; }
  .page { display: grid; gap: 12px; grid-template-columns: 214px minmax(0, 1fr); grid-template-rows: auto 1fr; }
  .page { align-items: start; }
  .controls { grid-row: span 2; }
  .pictures { display: grid; gap: 12px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); }
  .written { display: grid; gap: 12px; grid-template-columns: minmax(0, 1fr); }
  @media (max-width: 760px) {
    main { padding: 8px; }
    .page { grid-template: none / minmax(0, 1fr); }
    .controls { grid-row: auto; order: 1; }
    .pictures { display: contents; }
    .warped { box-shadow: 0 4px 6px #0002; position: sticky; top: 0; z-index: 100; }
    .difference { order: 2; }
    .written { order: 3; }
  }
</style>
{% endblock %}
{% block contents %}
<main>
  <header><h1>jaxtex explore</h1>{{ embed(roots.source) }}</header>
  <div class="page">
    <section class="controls" aria-label="Controls">{{ embed(roots.controls) }}</section>
    <div class="pictures">
      <section class="warped"><h2>Warped picture</h2>{{ embed(roots.warped) }}</section>
      <section class="difference"><h2>Float against hardware arithmetic</h2>{{ embed(roots.difference) }}</section>
    </div>
    <div class="written">
      <section><h2>In Python</h2>{{ embed(roots.python) }}</section>
      <section><h2>As a command</h2>{{ embed(roots.command) }}</section>
    </div>
  </div>
</main>
{% endblock %}
"""

# Of what Panel draws, whose parts see no styles of the page.
TEXT_STYLE = """
:host { font: 14px/1.45 system-ui, sans-serif; margin: 0; width: 100%; }
p { margin: 6px 0 0; }
.problem { color: #a4262c; }
"""
CODE_STYLE = """
:host { margin: 0; width: 100%; }
pre { background: #f5f6f8; border-radius: 4px; font: 13px/1.45 ui-monospace, monospace; margin: 0; padding: 8px; }
pre { overflow-x: auto; }
pre.command { overflow-wrap: anywhere; white-space: pre-wrap; }
"""
PICTURE_STYLE = ":host { margin: 0; width: 100%; } img { display: block; height: auto; max-width: 100%; }"
CONTROL_STYLE = ":host, .bk-input-group, .bk-input, .bk-slider-title { font: 14px/1.45 system-ui, sans-serif; }"

# `navigator.clipboard` exists on this machine and under HTTPS alone.
COPY_SCRIPT = """
const text = source.tags[0];
const done = () => { button.label = "Copied"; setTimeout(() => { button.label = "Copy"; }, 1500); };
const byHand = () => {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.appendChild(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  done();
};
if (navigator.clipboard) { navigator.clipboard.writeText(text).then(done, byHand); } else { byHand(); }
"""
