"""The chapters' larger drawings, one module a chapter; a chapter's cell calls one and shows it."""
