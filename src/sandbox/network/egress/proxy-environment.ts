import { PROXY_ADDRESS } from "../../egress/addresses.js";

const PROXY_URL = `http://${PROXY_ADDRESS.address}:${PROXY_ADDRESS.port}`;
/** Servers of the sandbox itself; and the proxy, to which a library of Node connects that knows proxies itself. */
const DIRECT = `localhost,127.0.0.1,::1,${PROXY_ADDRESS.address}`;

/**
 * Makes programs use the proxy. Some only read the names in lower case, others only those in capitals. `ALL_PROXY`
 * is not SOCKS, although the proxy speaks it: Python's clients then fail without a package of their own. Node reads
 * them only if it is told to.
 */
export const proxyEnvironment: Readonly<Record<string, string>> = {
  ...{ http_proxy: PROXY_URL, https_proxy: PROXY_URL, all_proxy: PROXY_URL, no_proxy: DIRECT },
  ...{ HTTP_PROXY: PROXY_URL, HTTPS_PROXY: PROXY_URL, ALL_PROXY: PROXY_URL, NO_PROXY: DIRECT },
  NODE_USE_ENV_PROXY: "1",
};
