// Resolves the SDK that extensions import: a folder that the host names, else a package beside the extension, else the
// module that is built into Hangar.
const NAMES = { "@github/copilot-sdk": "index.js", "@github/copilot-sdk/extension": "extension.js" };
let folder = null;
let own = "";

export async function initialize(data) {
    folder = data.folder;
    own = data.own;
}

export async function resolve(specifier, context, next) {
    const file = NAMES[specifier];
    if (file === undefined) return next(specifier, context);
    if (folder !== null) return { url: new URL(file, folder).href, shortCircuit: true };
    try {
        return await next(specifier, context);
    } catch {
        return { url: own, shortCircuit: true };
    }
}
