"""Pictures and pages, all in one style. Needs `wevent[experiments]`: matplotlib for pictures, plotly for pages."""
