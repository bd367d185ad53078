"""What mkdocs calls: pages and pictures that are made from the code are added to those that are written by hand."""

from command_pages import commands_page, settings_page
from figures import FIGURES
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from python_page import python_page
from tutorial_pages import TUTORIALS, run_tutorial, tutorial_page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every generated file; mkdocs then treats it as if it lay in docs/."""
    made: dict[str, str | bytes] = {
        "reference/commands.md": commands_page(),
        "reference/settings.md": settings_page(),
        "reference/python.md": python_page(),
    }
    for name, draw in FIGURES.items():
        made[f"figures/{name}.svg"] = draw()
    for script in TUTORIALS:
        output, pictures = run_tutorial(script)
        made[f"tutorials/{script.stem}.md"] = tutorial_page(script, output)
        made.update({f"tutorials/{name}": content for name, content in pictures.items()})
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files
