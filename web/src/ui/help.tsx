// The keys that work here, as an overlay.

import { groups, helpOpen } from "../keyboard";
import { Dialog, Key } from "./parts";

export function Help() {
  if (!helpOpen.value) return null;
  const close = () => {
    helpOpen.value = false;
  };
  return (
    <Dialog title="Keys" onClose={close}>
      <div class="help">
        {groups.value.map((group) => (
          <section>
            <h3>{group.title}</h3>
            <dl>
              {group.shortcuts.map((shortcut) => (
                <div>
                  <dt>
                    <Key keys={shortcut.keys.replace("Enter", "↵")} />
                  </dt>
                  <dd>{shortcut.does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
