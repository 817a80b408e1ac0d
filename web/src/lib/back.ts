/** Where a page leads after a login: a place of this site, and not the login itself. What is written may lead elsewhere in many ways; what it is read as may not. */
export function backTo(wished: string | null, origin: string): string {
  const home = `${origin}/`;
  try {
    const place = new URL(wished ?? "/", origin);
    const leads = place.origin === origin && !place.pathname.startsWith("/login");
    return leads ? place.href : home;
  } catch {
    return home;
  }
}
