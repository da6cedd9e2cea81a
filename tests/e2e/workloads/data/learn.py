# SPDX-License-Identifier: Apache-2.0
"""scikit-learn and scipy: models trained and tried, with joblib's processes too."""
import numpy as np
from scipy import optimize, sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score, train_test_split

if __name__ == "__main__":
    x, y = load_iris(return_X_y=True)
    line = LinearRegression().fit(np.arange(20).reshape(-1, 1), 3 * np.arange(20) + 1)
    print("line", round(float(line.coef_[0]), 6), round(float(line.intercept_), 6))
    train_x, test_x, train_y, test_y = train_test_split(x, y, random_state=0)
    forest = RandomForestClassifier(20, random_state=0, n_jobs=2).fit(train_x, train_y)
    print("forest", forest.score(test_x, test_y) > 0.9)
    scores = cross_val_score(RandomForestClassifier(5, random_state=0), x, y, cv=3, n_jobs=2)
    print("cross validation", len(scores), scores.mean() > 0.9)
    sizes = np.bincount(KMeans(3, n_init=5, random_state=0).fit_predict(x))
    print("clusters", len(sizes), 30 < min(sizes) < 50)
    print("root", round(optimize.brentq(lambda v: v**3 - 2, 0, 2), 6))
    print("sparse", sparse.eye(1000, format="csr").sum())
