"use strict";
// What is packed in the page is unpacked, and a <button data-save="ID" data-type="…" data-name="…">
// saves it as a file of that type; an SVG becomes a picture if the type is image/png.

const unpackBytes = async (element) => {
  const bytes = Uint8Array.from(atob(element.textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
};
const unpack = async (element) => new TextDecoder().decode(await unpackBytes(element));

{
  const SCALE = 4; // pixels of a picture for each of the figure

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };

  const draw = async (svg) => {
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.naturalWidth * SCALE, picture.naturalHeight * SCALE];
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#fff"; // as a paper
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-save]");
    if (!button) return;
    const { save: what, name, type } = button.dataset;
    const packed = document.getElementById(what);
    if (type === "image/png") save(await draw(await unpack(packed)), name);
    else save(new Blob([await unpackBytes(packed)], { type }), name);
  });

  // A select shows one of the figures that differ in their baseline.
  document.addEventListener("input", (event) => {
    if (event.target.id !== "baseline") return;
    for (const figure of document.querySelectorAll("[data-baseline]")) {
      figure.hidden = figure.dataset.baseline !== event.target.value;
    }
  });
}
