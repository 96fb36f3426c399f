"""The addresses of the site and of the repository: the environment's, else those of _config.yml.

ATTENTION_SITE and ATTENTION_REPOSITORY come first, then the file. In a GitHub Actions deploy,
GitHub's own variables fill what is still empty; and where the file names another repository than
the one that deploys, which is then a fork, they take the place of both of the file's addresses.
Where no address is known, no link is made up.
"""

import os


def pages_address(owner: str, name: str) -> str:
    """Where GitHub Pages serves a repository: a user's own site at the root, others below it."""
    host = f"{owner.lower()}.github.io"
    return f"https://{host}" if name.lower() == host else f"https://{host}/{name}"


def addresses(environ=os.environ, site: str = "", repository: str = "") -> tuple[str, str]:
    """The site's and the repository's address, each "" where unknown, without a final slash."""
    owner_and_name = environ.get("GITHUB_REPOSITORY", "")
    if owner_and_name and environ.get("GITHUB_ACTIONS"):
        server = environ.get("GITHUB_SERVER_URL", "https://github.com")
        own = f"{server}/{owner_and_name}"
        written = repository.rstrip("/").removesuffix(".git").lower()
        if written and written != own.lower():  # a fork: the file's addresses are the original's
            site = repository = ""
        repository = repository or own
        if server == "https://github.com":
            site = site or pages_address(*owner_and_name.split("/", 1))
    site = environ.get("ATTENTION_SITE", site)
    repository = environ.get("ATTENTION_REPOSITORY", repository)
    return site.rstrip("/"), repository.rstrip("/")


def _set(app, config):
    options = config.html_theme_options
    site, repository = addresses(
        site=config.html_baseurl or "", repository=options.get("repository_url") or ""
    )
    config.html_baseurl = site + "/" if site else ""
    config.ogp_site_url = config.html_baseurl
    config.ogp_site_name = config.html_title
    config.ogp_social_cards = {"enable": False}  # findable.py draws the cards
    config.attention_site, config.attention_repository = site, repository
    options.pop("repository_url", None)
    if repository:
        options["repository_url"] = repository
        options["use_repository_button"] = True


def setup(app):
    app.add_config_value("attention_site", "", "env")
    app.add_config_value("attention_repository", "", "env")
    app.connect("config-inited", _set, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
