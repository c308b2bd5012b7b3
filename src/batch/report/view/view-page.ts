import { type PageAsset, readPageAsset } from "../../../lib/http/page-html.js";

/** What is in the page of `brig view` before its code runs. */
export const viewPage = {
  title: "brig view",
  withoutScript: "This page shows a run of brig with JavaScript, which is turned off.",
};

export async function readViewPage(): Promise<PageAsset> {
  return await readPageAsset("view-page");
}
