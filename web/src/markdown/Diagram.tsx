import { useEffect, useRef, useState } from "react";
import { t } from "../lib/t";
import { useIsDark } from "../lib/theme";
import { draw, type Drawn } from "./diagrams";

/** What the lines of a diagram draw, above these lines: they are what is approved. It is drawn when it comes near. */
export function Diagram({ code }: { code: string }) {
  const place = useRef<HTMLElement>(null);
  const isDark = useIsDark();
  const [isNear, setIsNear] = useState(false);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  useEffect(() => {
    const watch = new IntersectionObserver(([seen]) => seen?.isIntersecting && setIsNear(true), { rootMargin: "800px" });
    if (place.current) watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (!isNear) return;
    let isOver = false;
    void draw(code, isDark, () => !isOver).then((now) => !isOver && now && setDrawn(now));
    return () => void (isOver = true);
  }, [isNear, code, isDark]);
  return (
    <figure ref={place} className="plan-diagram" data-testid="diagram">
      {drawn && "image" in drawn && <img src={drawn.image} alt={t("Diagram drawn from the lines below")} onError={() => setDrawn({ why: t("the image is broken") })} />}
      <figcaption className="text-xs text-soft">
        {!drawn && t("Drawing the diagram…")}
        {drawn && ("image" in drawn ? t("Drawn from the lines below; you approve the lines") : t("No diagram: {why}", { why: drawn.why }))}
      </figcaption>
    </figure>
  );
}
