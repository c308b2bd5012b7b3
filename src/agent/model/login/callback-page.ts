/** A page that the browser shows when the issuer redirects it back to brig. */
export interface CallbackPage {
  status: number;
  title: string;
  text: string;
}

/** The page's address contains the login code: no scripts, no other host, no cache. */
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
  text: "This window can be closed. brig continues in the terminal.",
};

/** The reason is shown in the terminal only: anybody may have written the text in the page's address. */
export const failedPage: CallbackPage = {
  status: 400,
  title: "The login did not succeed",
  text: "The terminal in which brig runs shows why. This window can be closed.",
};

export const otherLoginPage: CallbackPage = {
  status: 400,
  title: "This is not the login that brig is waiting for",
  text: "It may belong to an earlier attempt. Use the address that the terminal shows now.",
};

export const usedLoginPage: CallbackPage = {
  status: 409,
  title: "This login was already used",
  text: "The terminal in which brig runs shows the result. This window can be closed.",
};

export const notFoundPage: CallbackPage = {
  status: 404,
  title: "There is nothing here",
  text: "brig is waiting for a login. The terminal in which it runs shows the address to open.",
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
