import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { packageRoot } from "../../../package-root.js";

/** The compiled page: its code and its style, with the hashes that allow them. */
const pageAssetSchema = z.strictObject({
  script: z.string(),
  style: z.string(),
  scriptHash: z.string(),
  styleHash: z.string(),
});
export type PageAsset = z.infer<typeof pageAssetSchema>;

export async function readPageAsset(): Promise<PageAsset> {
  return pageAssetSchema.parse(JSON.parse(await readFile(join(packageRoot, "dist/view-page.json"), "utf8")));
}

/**
 * What the page may do: run its own code and nothing else. It makes no HTML of texts, and connects only to the server that it came from,
 * or as a file to nothing.
 */
export function pagePolicy(
  { scriptHash, styleHash }: PageAsset,
  { connects }: { connects: boolean },
): string {
  return [
    "default-src 'none'",
    `script-src '${scriptHash}'`,
    `style-src '${styleHash}'`,
    `connect-src ${connects ? "'self'" : "'none'"}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

/** Everything before the blocks of data. */
export function pageStart(asset: PageAsset, { connects }: { connects: boolean }): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${pagePolicy(asset, { connects })}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>brig view</title>
<style>${asset.style}</style>
</head>
<body>
<div id="page"></div>
<noscript>This page shows a run of brig with JavaScript, which is turned off.</noscript>
`;
}

/** The data of a block are gzip in base64, so no text of theirs can be read as HTML. */
export function pageBlock(number: number, base64: string): string {
  return `<script type="application/octet-stream" id="block-${number}">${base64}</script>\n`;
}

export function pageEnd({ script }: PageAsset): string {
  return `<script>${script}</script>
</body>
</html>
`;
}
