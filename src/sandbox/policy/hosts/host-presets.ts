/** Every public host. Addresses that are not public need a pattern of their own. */
export const PUBLIC = "@public";

/**
 * Hosts that package managers and git need, with the hosts that these redirect to. `storage.googleapis.com` is where
 * `proxy.golang.org` redirects to for large modules; anybody can have files there.
 */
export const HOST_PRESETS: Readonly<Record<string, readonly string[]>> = {
  "@npm": ["registry.npmjs.org:443", "registry.yarnpkg.com:443"],
  "@pypi": ["pypi.org:443", "files.pythonhosted.org:443"],
  "@debian": [
    ...["deb.debian.org:80", "deb.debian.org:443"],
    ...["security.debian.org:80", "security.debian.org:443"],
  ],
  "@crates": ["crates.io:443", "index.crates.io:443", "static.crates.io:443"],
  "@go": ["proxy.golang.org:443", "sum.golang.org:443", "storage.googleapis.com:443"],
  "@github": [
    ...["github.com:443", "api.github.com:443", "codeload.github.com:443"],
    ...["raw.githubusercontent.com:443", "objects.githubusercontent.com:443"],
    ...["release-assets.githubusercontent.com:443", "media.githubusercontent.com:443"],
  ],
};
