/** Every payload, plain and fenced; and text that hides what it says. */
export const payloads: string[];
