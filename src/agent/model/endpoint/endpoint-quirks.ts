import type { ModelProvider } from "../provider.js";

const azureHost = /(?:^|\.)(?:openai|cognitiveservices|aoai|services\.ai)\.azure\.|\bazure-api\.|\bazurefd\./;

/** Azure finds items by id, so requests must ask it to store them and send the ids back. */
export function isAzure({ id, baseUrl }: Pick<ModelProvider, "id" | "baseUrl">): boolean {
  const { hostname, pathname } = new URL(baseUrl);
  if (hostname.endsWith(".windows.net") && pathname.startsWith("/openai")) return true;
  return id.toLowerCase() === "azure" || azureHost.test(hostname);
}

/** Elsewhere the role `developer` is refused or, worse, its messages are silently dropped. */
export function supportsDeveloperRole(provider: Pick<ModelProvider, "id" | "baseUrl">): boolean {
  return isAzure(provider) || /(?:^|\.)openai\.com$/.test(new URL(provider.baseUrl).hostname);
}
