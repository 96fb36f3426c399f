# Two commands: `make serve` builds and serves the book, `make test` runs every test.
PYTHON ?= python3
PORT ?= 8000
RUN := .venv/bin/python
COLAB := us-docker.pkg.dev/colab-images/public/runtime:latest
export LANGUAGES ANSWERS HINTS EXERCISES TITLE DUE INTO NBGRADER COURSE LATE TIMES ROSTER SANDBOX WORKERS
.PHONY: serve book test check bench bench-pages notebooks course grade gradescope anki quiz pdf epub epubcheck zip downloads colab slides figures picture install environments
.PHONY: pins mutants future messages checked links

serve: book
	$(RUN) scripts/serve.py --port $(PORT)

book: install
	$(RUN) scripts/build.py

test: install
	$(RUN) scripts/browser.py
	$(RUN) scripts/bubblewrap.py
	$(MAKE) --no-print-directory -j 3 check book environments
	$(RUN) -m pytest -n 2 --no-loadscope-reorder

environments: install
	$(RUN) tests/environments_of_tests.py

check: install
	$(RUN) -m ruff check . && $(RUN) -m ruff format --check . && $(RUN) -m pyright && $(RUN) -m codespell_lib README.md book src scripts benchmarks tests && $(RUN) scripts/check_workflows.py

bench: install
	$(RUN) -m benchmarks

bench-pages: book
	$(RUN) scripts/browser.py && $(RUN) -m benchmarks.pages && $(RUN) -m benchmarks.writing

course: book
	$(RUN) scripts/course.py

grade: install
	$(RUN) -m grading $(SUBMISSIONS)

gradescope: book
	$(RUN) scripts/gradescope.py

messages: install
	$(RUN) scripts/build.py --messages

anki: book
	$(RUN) scripts/anki.py

quiz: book
	$(RUN) scripts/quiz.py

slides: book
	$(RUN) scripts/slides.py

picture: book
	$(RUN) scripts/picture.py

figures: book
	$(RUN) scripts/takeaway.py

pdf: book
	$(RUN) scripts/pdf.py $(CHAPTER)

epub: book
	$(RUN) scripts/epub.py

zip: book
	$(RUN) scripts/take_along.py

downloads: pdf epub
	$(RUN) scripts/take_along.py --offer

colab:
	docker run --rm --entrypoint python3 -v "$(CURDIR)/notebooks:/notebooks:ro" -v "$(CURDIR)/scripts:/scripts:ro" $(COLAB) /scripts/run_notebooks.py /notebooks

epubcheck: epub
	$(RUN) scripts/epubcheck.py

notebooks: install
	$(RUN) scripts/build.py --notebooks

pins: install
	$(RUN) scripts/pins.py

mutants: install
	$(RUN) scripts/mutants.py

future: install
	$(RUN) scripts/future.py

checked: book
	$(RUN) scripts/checked.py

links: book
	$(RUN) scripts/links.py

install:
	@$(PYTHON) scripts/install.py
