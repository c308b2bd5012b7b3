/** The oldest version of Podman's own API that Podman 5 still takes. */
export const OWN_API = "4.0.0";
