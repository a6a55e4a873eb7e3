"""scikit-learn's estimators, metrics and scalers on arrays of the server, through its array API dispatch."""
import numpy as np
import pytest
from sklearn import config_context, metrics, preprocessing
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, RidgeCV
from sklearn.metrics import pairwise
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from users import CHANCES, GUESSED, LABELS, POSITIVE, TARGET, X, agree

import arrayd as ad


@pytest.fixture(autouse=True)
def dispatch():
    with config_context(array_api_dispatch=True):
        yield


def pca(solver):
    def fit(of):
        model = PCA(2, svd_solver=solver, random_state=0, power_iteration_normalizer="QR").fit(of(X))
        return (abs(model.transform(of(X))), abs(model.components_), model.explained_variance_, model.mean_,
                model.inverse_transform(model.transform(of(X))))
    return fit


def fitted(model, target, *ask):
    """A function that fits and gives what the model says."""
    def fit(of):
        done = model.fit(of(X)) if target is None else model.fit(of(X), of(target))
        return [getattr(done, name)(of(X)) if not name.endswith("_") else getattr(done, name) for name in ask]
    return fit


ESTIMATORS = {
    "PCA full": pca("full"), "PCA eigh": pca("covariance_eigh"), "PCA randomized": pca("randomized"),
    "LDA": fitted(LinearDiscriminantAnalysis(solver="svd"), LABELS, "predict", "predict_proba", "decision_function",
                  "means_"),
    "Ridge": fitted(Ridge(solver="svd"), TARGET, "coef_", "predict"),
    "RidgeCV": fitted(RidgeCV(), TARGET, "coef_", "predict"),
    "RidgeClassifier": fitted(RidgeClassifier(solver="svd"), LABELS, "coef_", "predict"),
    "LogisticRegression": fitted(LogisticRegression(solver="lbfgs"), LABELS, "coef_", "predict", "predict_proba"),
    "GaussianNB": fitted(GaussianNB(), LABELS, "theta_", "predict", "predict_proba"),
    "GaussianMixture": fitted(GaussianMixture(2, random_state=0, init_params="random"), None, "means_", "predict"),
    "Nystroem": fitted(Nystroem(n_components=5, random_state=0), None, "transform"),
    **{str(scaler): fitted(scaler, None, "transform") for scaler in (
        preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), preprocessing.MaxAbsScaler(),
        preprocessing.Normalizer(), preprocessing.Normalizer("l1"), preprocessing.Binarizer(threshold=0.1),
        preprocessing.PolynomialFeatures(2))},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name):
    agree(ESTIMATORS[name], rtol=1e-4 if name == "LogisticRegression" else 1e-7)


CLASSES = """accuracy_score balanced_accuracy_score cohen_kappa_score confusion_matrix f1_score hamming_loss
jaccard_score multilabel_confusion_matrix precision_score recall_score zero_one_loss""".split()
REGRESSION = """explained_variance_score max_error mean_absolute_error mean_absolute_percentage_error mean_pinball_loss
mean_squared_error mean_squared_log_error mean_tweedie_deviance median_absolute_error r2_score
root_mean_squared_error""".split()
SCORES = """average_precision_score brier_score_loss d2_log_loss_score det_curve log_loss precision_recall_curve
roc_curve""".split()
PAIRS = """additive_chi2_kernel chi2_kernel cosine_distances cosine_similarity euclidean_distances laplacian_kernel
linear_kernel manhattan_distances polynomial_kernel rbf_kernel sigmoid_kernel""".split()


@pytest.mark.parametrize("name", CLASSES)
def test_metrics_of_classes(name):
    agree(lambda of: getattr(metrics, name)(of(LABELS), of(GUESSED)))


@pytest.mark.parametrize("name", REGRESSION)
def test_metrics_of_regression(name):
    truth = np.abs(TARGET)
    agree(lambda of: getattr(metrics, name)(of(truth), of(truth + np.abs(X[:, 1]))))


@pytest.mark.parametrize("name", SCORES)
def test_metrics_of_scores(name):
    agree(lambda of: getattr(metrics, name)(of(LABELS), of(CHANCES)))


@pytest.mark.parametrize("name", PAIRS)
def test_pairwise(name):
    agree(lambda of: getattr(pairwise, name)(of(POSITIVE), of(POSITIVE[:7])), atol=1e-7)


def test_preparation():
    agree(lambda of: train_test_split(of(X), of(LABELS), random_state=0))
    agree(lambda of: preprocessing.LabelEncoder().fit_transform(of(LABELS)))
    agree(lambda of: preprocessing.LabelBinarizer().fit_transform(of(LABELS)))


def test_attributes_stay_on_the_server():
    model = PCA(2, svd_solver="full").fit(ad.asarray(X))
    assert all(isinstance(part, ad.ndarray) for part in (model.components_, model.mean_, model.singular_values_))
    assert model.components_.device == ad.asarray(X).device
    assert ad.asarray(X).astype(ad.float32).dtype == PCA(2, svd_solver="full").fit(
        ad.asarray(X, dtype=ad.float32)).components_.dtype
