import type { ModelProvider } from "../provider.js";

const azureHost = /(?:^|\.)(?:openai|cognitiveservices|aoai|services\.ai)\.azure\.|\bazure-api\.|\bazurefd\./;

/** Azure's endpoints look items up by their ids, so they have to keep them and be given them again. */
export function isAzure({ id, baseUrl }: Pick<ModelProvider, "id" | "baseUrl">): boolean {
  const { hostname, pathname } = new URL(baseUrl);
  if (hostname.endsWith(".windows.net") && pathname.startsWith("/openai")) return true;
  return id.toLowerCase() === "azure" || azureHost.test(hostname);
}

/** Whether `developer` is a role there. Elsewhere it is refused or, worse, its messages are dropped in silence. */
export function knowsDeveloperRole(provider: Pick<ModelProvider, "id" | "baseUrl">): boolean {
  return isAzure(provider) || /(?:^|\.)openai\.com$/.test(new URL(provider.baseUrl).hostname);
}
