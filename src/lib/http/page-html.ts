import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { packageRoot } from "../../package-root.js";

/** A compiled page: its code and its style, with the hashes that allow them. */
const pageAssetSchema = z.strictObject({
  script: z.string(),
  style: z.string(),
  scriptHash: z.string(),
  styleHash: z.string(),
});
export type PageAsset = z.infer<typeof pageAssetSchema>;

/** `name`: of the page's file in what the build makes, such as `view-page`. */
export async function readPageAsset(name: string): Promise<PageAsset> {
  return pageAssetSchema.parse(JSON.parse(await readFile(join(packageRoot, `dist/${name}.json`), "utf8")));
}

export interface PageOptions {
  title: string;
  /** What a browser shows that runs no code. */
  withoutScript: string;
  /** Whether it asks the server that it came from. */
  connects: boolean;
}

/**
 * What a page may do: run its own code and nothing else. It makes no HTML of texts, and connects only to the server that it came from,
 * or as a file to nothing.
 */
function pagePolicy(
  { scriptHash, styleHash }: PageAsset,
  { connects }: Pick<PageOptions, "connects">,
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

/** Of all answers of a server to its page. */
export const pageHeaders = {
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** A page that a server sends: everything that is needed to show it, and nothing that it shows. */
export function servedPage(
  asset: PageAsset,
  options: Omit<PageOptions, "connects">,
): { html: string; headers: Record<string, string> } {
  return {
    html: pageStart(asset, { ...options, connects: true }) + pageEnd(asset),
    headers: {
      ...pageHeaders,
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": `${pagePolicy(asset, { connects: true })}; frame-ancestors 'none'`,
    },
  };
}

/** Everything before the data that a page may have in it. */
export function pageStart(asset: PageAsset, options: PageOptions): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${pagePolicy(asset, options)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>${options.title}</title>
<style>${asset.style}</style>
</head>
<body>
<div id="page"></div>
<noscript>${options.withoutScript}</noscript>
`;
}

export function pageEnd({ script }: PageAsset): string {
  return `<script>${script}</script>
</body>
</html>
`;
}
