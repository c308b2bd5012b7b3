/** What the browser shows once the login has come back to brig. */
export interface CallbackPage {
  status: number;
  title: string;
  text: string;
}

/** No scripts, no other host, nothing kept: the page's address holds the code of the login. */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  connection: "close",
};

export const loggedInPage: CallbackPage = {
  status: 200,
  title: "You are logged in to brig",
  text: "This window can be closed. brig goes on in the terminal.",
};

/** The reason stays in the terminal: what the page's address says may be anybody's words. */
export const failedPage: CallbackPage = {
  status: 400,
  title: "The login did not succeed",
  text: "The terminal that brig runs in says why. This window can be closed.",
};

export const strangePage: CallbackPage = {
  status: 400,
  title: "This is not the login that brig waits for",
  text: "It may belong to an earlier attempt. Use the address that brig shows in the terminal now.",
};

export const secondPage: CallbackPage = {
  status: 409,
  title: "This login was already used",
  text: "The terminal that brig runs in says how it went. This window can be closed.",
};

export const nothingPage: CallbackPage = {
  status: 404,
  title: "There is nothing here",
  text: "brig waits for a login. The terminal that it runs in shows where to go.",
};

export function renderPage({ title, text }: CallbackPage): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 20vh auto 0; padding: 0 1rem; }
h1 { font-size: 1.25rem; }
</style>
</head>
<body>
<h1>${escaped(title)}</h1>
<p>${escaped(text)}</p>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
