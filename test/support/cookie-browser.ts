/** As much of a browser as a login takes: redirects, cookies with their paths, and forms without scripts. */
export class CookieBrowser {
  readonly #cookies: { origin: string; path: string; name: string; value: string }[] = [];

  async open(url: string, init: RequestInit = {}): Promise<{ response: Response; url: string }> {
    let [address, request] = [url, init];
    for (let hop = 0; hop < 20; hop += 1) {
      const response = await fetch(address, {
        ...request,
        redirect: "manual",
        headers: { ...request.headers, cookie: this.#cookiesFor(address) },
      });
      this.#keep(address, response);
      const next = response.headers.get("location");
      if (next === null) return { response, url: address };
      await response.body?.cancel();
      [address, request] = [new URL(next, address).href, {}];
    }
    throw new Error("too many redirects");
  }

  /** Fills in the provider's pages for logging in and consenting. */
  async logIn(url: string): Promise<Response> {
    return await this.#fillIn(await this.open(url));
  }

  /** Enters a code on the page for devices, logs in and consents. */
  async enterCode(url: string, code: string): Promise<Response> {
    const { response } = await this.open(url);
    const page = await this.submit(url, { ...hiddenFields(await response.text()), user_code: code });
    return await this.#fillIn(page);
  }

  /** Follows the link that cancels the login. */
  async refuse(url: string): Promise<Response> {
    const { response, url: address } = await this.open(url);
    const link = /<a href="([^"]*\/abort)"/.exec(await response.text());
    if (link?.[1] === undefined) throw new Error("the page has no link to cancel");
    return (await this.open(new URL(link[1], address).href)).response;
  }

  async #fillIn(first: { response: Response; url: string }): Promise<Response> {
    let page = first;
    for (let step = 0; step < 6; step += 1) {
      const html = await page.response.clone().text();
      const action = /<form[^>]*\baction="([^"]+)"/.exec(html)?.[1];
      if (action === undefined) return page.response;
      page = await this.submit(new URL(action.replaceAll("&amp;", "&"), page.url).href, hiddenFields(html));
    }
    throw new Error("too many pages");
  }

  async submit(url: string, fields: Record<string, string>) {
    return await this.open(url, { method: "POST", body: new URLSearchParams(fields) });
  }

  #cookiesFor(url: string): string {
    const { origin, pathname } = new URL(url);
    return this.#cookies
      .filter((cookie) => cookie.origin === origin && pathname.startsWith(cookie.path))
      .map(({ name, value }) => `${name}=${value}`)
      .join("; ");
  }

  #keep(url: string, response: Response): void {
    const { origin } = new URL(url);
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      const path = /;\s*path=([^;]+)/i.exec(line)?.[1] ?? "/";
      const index = this.#cookies.findIndex(
        (one) => one.origin === origin && one.path === path && one.name === name,
      );
      if (index !== -1) this.#cookies.splice(index, 1);
      if (value !== "") this.#cookies.push({ origin, path, name, value });
    }
  }
}

/** What the page sends unseen, and what a person types: any name and password. */
function hiddenFields(html: string): Record<string, string> {
  const hidden = [...html.matchAll(/<input[^>]*type="hidden"[^>]*>/g)].map(([input]) => [
    /name="([^"]*)"/.exec(input)?.[1] ?? "",
    /value="([^"]*)"/.exec(input)?.[1] ?? "",
  ]);
  return { ...Object.fromEntries(hidden), login: "ada", password: "any" };
}
