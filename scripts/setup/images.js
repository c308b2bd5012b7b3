import { provideDebian } from "./debian-image.js";

/** Builds the images that are missing or out of date, and fills the toolbox volume. */
export async function buildImages(engine, { progress, signal }) {
  const [{ ensureImages, missingImages }, { ensureToolboxVolume }] = await Promise.all([
    import("../../dist/sandbox/images/ensure.js"),
    import("../../dist/sandbox/images/toolbox-volume.js"),
  ]);
  const names = ["toolbox", "base"];
  const missing = await missingImages(engine, names);
  const ensure = (onProgress) =>
    ensureImages(engine, { names, onProgress, signal, provideParent: provideDebian });
  const { toolbox } =
    missing.length === 0
      ? await ensure()
      : await progress.step(`building the images ${missing.join(" and ")}`, ensure);
  await ensureToolboxVolume(engine, toolbox);
}
